-- A group as its row has it.
-- :id
-- Returns the fields of `rows.GroupRecord`.
SELECT
  id, state, is_paused, is_open, is_cancelled, reason, added, pending, completed, failed, cancelled,
  root, tenant, finish_job, created_at, ended_at, max_jobs
FROM windrow_job_group
WHERE id = :id
