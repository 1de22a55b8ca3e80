-- The queues that have claimable jobs, found by stepping through the claim's index from one queue to
-- the next.
-- Returns queue.
WITH RECURSIVE found (queue) AS (
  SELECT min(queue) FROM windrow_job_live WHERE state = 'ready'
  UNION ALL
  SELECT (SELECT min(j.queue) FROM windrow_job_live AS j WHERE j.state = 'ready' AND j.queue > found.queue)
  FROM found
  WHERE found.queue IS NOT NULL
)
SELECT queue FROM found WHERE queue IS NOT NULL
