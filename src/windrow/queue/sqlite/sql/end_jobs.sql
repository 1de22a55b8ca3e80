-- Live jobs are copied to the finished ones; `remove_jobs` takes them from the live ones, because
-- SQLite has no DELETE inside a query.
-- :seqs json array, :state, :error, :attempts to add, :retention seconds (default of the state), :now
-- A job's own retention counts more than its queue's; members of a group go with the group.
INSERT INTO windrow_job_finished (
  seq, id, queue, kind, state, priority, run_at, created_at, started_at, finished_at, expires_at,
  attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds, retention_seconds, tenant,
  group_id, root_of, unique_key, error, limit_keys, fair_key, max_hold_seconds, place
)
SELECT
  seq, id, queue, kind, :state, priority, run_at, created_at, started_at, :now,
  CASE WHEN group_id IS NOT NULL OR seconds < 0 THEN NULL ELSE :now + seconds * 1000000 END,
  attempts + :attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds,
  retention_seconds, tenant, group_id, root_of, unique_key, :error, limit_keys, fair_key,
  max_hold_seconds, place
FROM (
  SELECT j.*, coalesce(
    j.retention_seconds,
    (
      SELECT CASE :state
        WHEN 'completed' THEN q.completed_seconds
        WHEN 'failed' THEN q.failed_seconds
        ELSE q.cancelled_seconds
      END
      FROM windrow_queue AS q WHERE q.name = j.queue
    ),
    :retention
  ) AS seconds
  FROM windrow_job_live AS j
  WHERE j.seq IN (SELECT value FROM json_each(:seqs))
)
