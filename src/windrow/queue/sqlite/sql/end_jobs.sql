-- Live jobs are copied to the finished ones; `remove_jobs` takes them from the live ones, because
-- SQLite has no DELETE inside a query.
-- :seqs json array, :state, :error, :attempts to add, :retention seconds (default of the state), :now
INSERT INTO windrow_job_finished (
  seq, id, queue, kind, state, priority, run_at, created_at, started_at, finished_at, expires_at,
  attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds, retention_seconds, tenant,
  group_id, root_of, unique_key, error
)
SELECT
  seq, id, queue, kind, :state, priority, run_at, created_at, started_at, :now,
  CASE WHEN retention_seconds < 0 THEN NULL
  ELSE :now + coalesce(retention_seconds, :retention) * 1000000 END,
  attempts + :attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds,
  retention_seconds, tenant, group_id, root_of, unique_key, :error
FROM windrow_job_live
WHERE seq IN (SELECT value FROM json_each(:seqs))
