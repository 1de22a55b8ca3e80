-- The queues that have ready jobs, found by stepping through the claim's index from one to the next, and
-- the first job of each that is of these kinds and tenants, whatever its group or limits.
-- :kinds :tenants (json arrays or null)
-- Returns queue, and priority and place or null.
WITH RECURSIVE found (queue) AS (
  SELECT min(queue) FROM windrow_job_live WHERE state = 'ready'
  UNION ALL
  SELECT (SELECT min(j.queue) FROM windrow_job_live AS j WHERE j.state = 'ready' AND j.queue > found.queue)
  FROM found
  WHERE found.queue IS NOT NULL
)
SELECT found.queue, j.priority, j.place
FROM found
LEFT JOIN windrow_job_live AS j ON j.seq = (
  SELECT head.seq FROM windrow_job_live AS head INDEXED BY windrow_job_live_ready
  WHERE head.queue = found.queue AND head.state = 'ready'
    AND (:kinds IS NULL OR head.kind IN (SELECT value FROM json_each(:kinds)))
    AND (:tenants IS NULL OR head.tenant IN (SELECT value FROM json_each(:tenants)))
  ORDER BY head.priority DESC, head.place
  LIMIT 1
)
WHERE found.queue IS NOT NULL
