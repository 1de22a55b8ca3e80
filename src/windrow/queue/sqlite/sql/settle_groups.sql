-- Members of a group ended, were retried or deleted.
-- :id and what to add to :pending :completed :failed :cancelled
-- Returns the fields of `rows.GroupRecord`.
UPDATE windrow_job_group
SET pending = pending + :pending, completed = completed + :completed, failed = failed + :failed,
  cancelled = cancelled + :cancelled
WHERE id = :id
RETURNING
  id, state, is_paused, is_open, is_cancelled, reason, added, pending, completed, failed, cancelled,
  root, tenant, finish_job, created_at, ended_at
