-- :id
UPDATE job_group SET is_paused = 0 WHERE id = :id
