-- A flag that claims look at; no member is touched.
-- :id
UPDATE windrow_job_group SET is_paused = 1 WHERE id = :id
