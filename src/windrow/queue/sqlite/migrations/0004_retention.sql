-- Retention: how long finished jobs are kept, by queue and state; members of a group go with it.

ALTER TABLE windrow_queue ADD COLUMN completed_seconds INTEGER;
ALTER TABLE windrow_queue ADD COLUMN failed_seconds INTEGER;
ALTER TABLE windrow_queue ADD COLUMN cancelled_seconds INTEGER;

-- Set while the group has ended and no member of it runs again.
ALTER TABLE windrow_job_group ADD COLUMN expires_at INTEGER;

CREATE INDEX windrow_job_group_expiry ON windrow_job_group (expires_at) WHERE expires_at IS NOT NULL;

UPDATE windrow_job_group SET expires_at = ended_at + coalesce(retention_seconds, 86400) * 1000000
WHERE ended_at IS NOT NULL AND pending = 0 AND coalesce(retention_seconds, 0) >= 0;

UPDATE windrow_job_finished SET expires_at = NULL WHERE group_id IS NOT NULL;

CREATE INDEX windrow_job_finished_expiry ON windrow_job_finished (expires_at) WHERE expires_at IS NOT NULL;
