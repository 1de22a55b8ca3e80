-- Jobs by id with everything but their error history. :ids. A join could be planned to read all
-- payloads: so many leaves may hold a job that the planner expects hundreds of them.
SELECT job.id, job.seq, job.queue, job.kind, job.state, job.priority, job.attempts, job.crashes,
       job.runs, job.max_attempts, job.max_crashes, job.created_at, job.run_at, job.started_at,
       job.finished_at,
       coalesce(nullif(job.expires_at, 'infinity'), job_group.expires_at) AS expires_at,
       job.tenant, job.group_id,
       job.root_of, job.unique_key, job.error, job.lease_seconds, job.retention_seconds,
       job.stop_as, job.limit_keys, job.max_hold_seconds, job.is_cleaned, job.result, stored.payload, stored.headers, stored.tags,
       blob.body,
       lease.token AS lease, lease.worker, lease.expires_at AS lease_expires_at,
       progress.percent, progress.message, progress.counters, progress.updated_at
  FROM windrow.job
 CROSS JOIN LATERAL (
       SELECT * FROM windrow.job_payload AS stored WHERE stored.id = job.id OFFSET 0) AS stored
  LEFT JOIN LATERAL (
       SELECT * FROM windrow.blob WHERE blob.hash = job.result_hash OFFSET 0) AS blob ON true
  LEFT JOIN LATERAL (
       SELECT token, worker, expires_at FROM windrow.lease
        WHERE lease.token = job.lease AND job.state = 'active' OFFSET 0) AS lease ON true
  LEFT JOIN LATERAL (
       SELECT * FROM windrow.job_progress AS progress
        WHERE progress.id = job.id OFFSET 0) AS progress ON true
  LEFT JOIN LATERAL (
       SELECT * FROM windrow.job_group
        WHERE job_group.id = job.group_id AND job.finished_at IS NOT NULL
       OFFSET 0) AS job_group ON true
 WHERE job.id = ANY (:ids::uuid[])
