-- Groups with all their columns.
-- :ids json array
SELECT
  id, state, is_paused, is_open, is_cancelled, reason, added AS members, pending, completed, failed,
  cancelled, root, tenant, finish_job, retention_seconds, created_at, ended_at, expires_at,
  max_jobs
FROM windrow_job_group
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id
