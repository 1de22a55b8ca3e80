-- The unclaimed jobs of a queue that are given up first: lowest priority, then oldest. Reads the
-- live jobs; the queue is bounded.
-- :queue :limit
-- Returns the fields of `rows.LiveJob`.
SELECT
  j.seq, j.id, j.queue, j.state, j.run_at, j.crashes, j.max_crashes, j.lease, j.tenant, j.group_id,
  j.root_of, j.unique_key, j.is_follower, j.stop_as, j.error, j.limit_keys, j.kind
FROM windrow_job_live AS j
WHERE j.queue = :queue AND j.state IN ('scheduled', 'held', 'paused', 'ready')
ORDER BY j.priority, j.place
LIMIT :limit
