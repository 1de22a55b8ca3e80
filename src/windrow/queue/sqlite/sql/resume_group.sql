-- Claims look at the members again.
-- :id
UPDATE windrow_job_group SET is_paused = 0 WHERE id = :id
