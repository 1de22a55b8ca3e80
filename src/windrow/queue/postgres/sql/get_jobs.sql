-- Jobs by id with everything but their error history. :ids.
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
  JOIN windrow.job_payload AS stored ON stored.id = job.id
  LEFT JOIN windrow.blob ON blob.hash = job.result_hash
  LEFT JOIN windrow.lease ON lease.token = job.lease AND job.state = 'active'
  LEFT JOIN windrow.job_progress AS progress ON progress.id = job.id
  LEFT JOIN windrow.job_group ON job_group.id = job.group_id AND job.finished_at IS NOT NULL
 WHERE job.id = ANY (:ids::uuid[])
