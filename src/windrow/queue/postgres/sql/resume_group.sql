-- Let a group's jobs be claimed again. :id. Returns id.
-- gate tenant
UPDATE windrow.job_group SET is_paused = false WHERE id = :id::uuid RETURNING id
