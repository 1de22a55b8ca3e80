-- The lanes of a fairness key that have held jobs, one index probe for each. Those of paused queues
-- are left out.
-- :key :now
-- Returns queue, kind, tenant ('' for none), is_unserved.
WITH RECURSIVE lane (queue, kind, tenant) AS (
  SELECT * FROM (
    SELECT queue, kind, ifnull(tenant, '')
    FROM windrow_job_live INDEXED BY windrow_job_live_held_lane
    WHERE fair_key = :key AND state = 'held' AND is_follower = 0
    ORDER BY queue, kind, ifnull(tenant, '')
    LIMIT 1
  )
  UNION ALL
  SELECT j.queue, j.kind, ifnull(j.tenant, '')
  FROM lane
  CROSS JOIN windrow_job_live AS j ON j.seq = (
    SELECT next.seq FROM windrow_job_live AS next INDEXED BY windrow_job_live_held_lane
    WHERE next.fair_key = :key AND next.state = 'held' AND next.is_follower = 0
      AND (next.queue, next.kind, ifnull(next.tenant, '')) > (lane.queue, lane.kind, lane.tenant)
    ORDER BY next.queue, next.kind, ifnull(next.tenant, '')
    LIMIT 1
  )
)
SELECT
  lane.queue, lane.kind, lane.tenant,
  EXISTS (
    SELECT 1 FROM windrow_unserved AS u
    WHERE u.queue = lane.queue AND u.kind = lane.kind AND u.tenant = lane.tenant AND u.until > :now
  ) AS is_unserved
FROM lane
WHERE lane.queue NOT IN (SELECT name FROM windrow_queue WHERE is_paused = 1)
