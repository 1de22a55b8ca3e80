-- A page of a group's notes on a subject, in their own order.
-- :group_id :subject :after a text, or empty :limit
-- Returns text.
SELECT text FROM windrow_group_note
WHERE group_id = :group_id AND subject = :subject AND text > :after
ORDER BY text
LIMIT :limit
