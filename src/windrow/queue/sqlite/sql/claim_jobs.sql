-- The best claimable jobs of one queue, with what their workers need. `start_jobs` makes them active:
-- SQLite has no UPDATE inside a query, and its RETURNING cannot join the payload.
-- :queue :kinds :tenants (json arrays or null) :limit :now
-- Returns the columns `rows.claimed_jobs` takes, best first.
SELECT
  j.id, j.seq, j.queue, j.kind, j.priority, j.attempts, j.crashes, j.runs, j.max_attempts,
  j.max_crashes, j.created_at, j.run_at, j.tenant, j.group_id, j.root_of, j.unique_key, j.error,
  j.lease_seconds, j.retention_seconds, p.payload, p.headers, p.tags, p.is_cleaned, j.limit_keys,
  j.max_hold_seconds, j.place
FROM windrow_job_live AS j INDEXED BY windrow_job_live_ready
CROSS JOIN windrow_job_payload AS p ON p.seq = j.seq
WHERE j.queue = :queue
  AND j.state = 'ready'
  AND (:kinds IS NULL OR j.kind IN (SELECT value FROM json_each(:kinds)))
  AND (:tenants IS NULL OR j.tenant IN (SELECT value FROM json_each(:tenants)))
  AND (j.group_id IS NULL OR j.group_id NOT IN (SELECT id FROM windrow_job_group WHERE is_paused = 1))
  AND (
    j.limit_keys IS NULL
    OR NOT EXISTS (
      SELECT 1 FROM json_each(j.limit_keys) AS k
      WHERE k.value IN (
        SELECT key FROM windrow_job_limit WHERE parked_until IS NOT NULL AND parked_until > :now
      )
    )
  )
ORDER BY j.priority DESC, j.place
LIMIT :limit
