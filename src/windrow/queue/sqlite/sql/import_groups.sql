-- A group as it was elsewhere.
-- Its columns, :members for those it ever had.
INSERT INTO windrow_job_group (
  id, state, is_paused, is_open, is_cancelled, reason, added, pending, completed, failed, cancelled,
  root, tenant, finish_job, retention_seconds, created_at, ended_at, expires_at, max_jobs
)
VALUES (
  :id, :state, :is_paused, :is_open, :is_cancelled, :reason, :members, :pending, :completed, :failed,
  :cancelled, :root, :tenant, :finish_job, :retention_seconds, :created_at, :ended_at, :expires_at,
  :max_jobs
)
