-- Members of a group ended, were retried or deleted.
-- :id and what to add to :pending :completed :failed :cancelled, :now
-- A group that has ended expires anew when the last member that was retried has.
-- Returns the fields of `rows.GroupRecord`.
UPDATE windrow_job_group
SET pending = pending + :pending, completed = completed + :completed, failed = failed + :failed,
  cancelled = cancelled + :cancelled,
  expires_at = CASE
    WHEN ended_at IS NULL OR pending + :pending > 0 OR retention_seconds < 0 THEN NULL
    WHEN :pending < 0 THEN :now + coalesce(retention_seconds, 86400) * 1000000
    ELSE expires_at
  END
WHERE id = :id
RETURNING
  id, state, is_paused, is_open, is_cancelled, reason, added, pending, completed, failed, cancelled,
  root, tenant, finish_job, created_at, ended_at, max_jobs
