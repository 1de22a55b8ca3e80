-- Finished jobs are live again, with nothing used up and the place in the line they had.
-- :seqs json array, :now
INSERT INTO windrow_job_live (
  seq, id, queue, kind, state, priority, run_at, created_at, started_at, attempts, crashes, runs,
  max_attempts, max_crashes, lease_seconds, retention_seconds, tenant, group_id, root_of, unique_key,
  limit_keys, fair_key, max_hold_seconds, place
)
SELECT
  seq, id, queue, kind, CASE WHEN limit_keys IS NULL THEN 'ready' ELSE 'held' END, priority, :now, created_at, started_at, 0, 0, runs, max_attempts,
  max_crashes, lease_seconds, retention_seconds, tenant, group_id, root_of, unique_key, limit_keys,
  fair_key, max_hold_seconds, place
FROM windrow_job_finished
WHERE seq IN (SELECT value FROM json_each(:seqs))
