-- Groups with all their columns. :ids.
SELECT id, state, is_paused, is_open, is_cancelled, cancel_reason AS reason, members, pending,
       completed, failed, cancelled, root, tenant, finish_job, retention_seconds, created_at,
       ended_at, expires_at, max_jobs
  FROM windrow.job_group
 WHERE id = ANY (:ids::uuid[])
 ORDER BY id
