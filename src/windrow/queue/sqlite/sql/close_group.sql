-- A group is no longer held open.
-- :id
UPDATE job_group SET is_open = 0 WHERE id = :id
