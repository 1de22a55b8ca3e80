-- Held jobs that have waited for their limits longer than they may. Steps from one length of waiting
-- to the next, and looks at the jobs of each that were due first.
-- :now :limit
-- Returns the fields of `rows.LiveJob`, then max_hold_seconds.
WITH RECURSIVE length (seconds) AS (
  SELECT min(max_hold_seconds) FROM windrow_job_live
  WHERE state = 'held' AND is_follower = 0 AND max_hold_seconds IS NOT NULL
  UNION ALL
  SELECT (
    SELECT min(j.max_hold_seconds) FROM windrow_job_live AS j
    WHERE j.state = 'held' AND j.is_follower = 0 AND j.max_hold_seconds > length.seconds
  )
  FROM length
  WHERE length.seconds IS NOT NULL
)
SELECT
  j.seq, j.id, j.queue, j.state, j.run_at, j.crashes, j.max_crashes, j.lease, j.tenant, j.group_id,
  j.root_of, j.unique_key, j.is_follower, j.stop_as, j.error, j.limit_keys, j.kind,
  j.max_hold_seconds
FROM length
CROSS JOIN windrow_job_live AS j INDEXED BY windrow_job_live_hold
WHERE j.state = 'held' AND j.is_follower = 0 AND j.max_hold_seconds IS NOT NULL
  AND j.max_hold_seconds = length.seconds
  AND j.run_at <= :now - length.seconds * 1000000
LIMIT :limit
