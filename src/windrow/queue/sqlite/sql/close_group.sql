-- A group is no longer held open.
-- :id
UPDATE windrow_job_group SET is_open = 0 WHERE id = :id
