-- Notes of groups that go.
-- :ids json array
DELETE FROM windrow_group_note WHERE group_id IN (SELECT value FROM json_each(:ids))
