-- Stop claims of a group's jobs. :id. Returns id.
-- gate tenant
UPDATE windrow.job_group SET is_paused = true WHERE id = :id::uuid RETURNING id
