-- Notes of a group; those that it has stay as they are.
-- :group_id :subject :texts json array
INSERT OR IGNORE INTO windrow_group_note (group_id, subject, text)
SELECT :group_id, :subject, value FROM json_each(:texts)
