-- A page of jobs, newest first, without results and histories.
-- {table} windrow.job, or the half of it that can have them; {conditions} and {order} those of `listings.py`,
-- with their parameters; :limit. A text for each set of filters, so that its plan can be kept: to plan
-- one with all leaves takes longer than most pages do.
-- What belongs to a job is looked up for each: as joins they could be planned to read all of it,
-- because how many jobs there will be is not known.
SELECT job.id, job.seq, job.queue, job.kind, job.state, job.priority, job.attempts, job.crashes,
       job.runs, job.max_attempts, job.max_crashes, job.created_at, job.run_at, job.started_at,
       job.finished_at,
       coalesce(nullif(job.expires_at, 'infinity'), job_group.expires_at) AS expires_at,
       job.tenant, job.group_id,
       job.root_of, job.unique_key, job.error, job.lease_seconds, job.retention_seconds,
       job.stop_as, job.limit_keys, job.max_hold_seconds, job.is_cleaned, stored.payload, stored.headers, stored.tags,
       NULL::json AS result, NULL::bytea AS body,
       lease.token AS lease, lease.worker, lease.expires_at AS lease_expires_at,
       progress.percent, progress.message, progress.counters, progress.updated_at
  FROM (SELECT *
          FROM {table} AS job
         WHERE {conditions}
         ORDER BY {order}
         LIMIT :limit::integer) AS job
 CROSS JOIN LATERAL (
       SELECT * FROM windrow.job_payload AS stored WHERE stored.id = job.id OFFSET 0) AS stored
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
 ORDER BY job.id DESC
