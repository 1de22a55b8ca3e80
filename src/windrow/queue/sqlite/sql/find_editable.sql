-- What can be edited of a job, as it is.
-- {table} windrow_job_live or windrow_job_finished, :id
-- Returns seq, id, state, and the columns `edit_job` and `replace_payloads` set.
SELECT
  j.seq, j.id, j.state, j.kind, j.queue, j.priority, j.run_at, j.max_attempts, j.max_crashes,
  j.lease_seconds, j.retention_seconds, j.limit_keys, j.fair_key, j.max_hold_seconds,
  j.is_follower, p.payload, p.headers, p.tags, p.is_cleaned
FROM {table} AS j JOIN windrow_job_payload AS p ON p.seq = j.seq
WHERE j.id = :id
