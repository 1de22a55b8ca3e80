-- When the oldest claimable job of a queue became due. Steps from one priority to the next and looks
-- at the first job of each: jobs of one priority stand in the order they came.
-- :queue
-- Returns run_at.
WITH RECURSIVE head (priority) AS (
  SELECT max(priority) FROM windrow_job_live WHERE state = 'ready' AND queue = :queue
  UNION ALL
  SELECT (
    SELECT max(j.priority) FROM windrow_job_live AS j
    WHERE j.state = 'ready' AND j.queue = :queue AND j.priority < head.priority
  )
  FROM head
  WHERE head.priority IS NOT NULL
)
SELECT min((
  SELECT j.run_at FROM windrow_job_live AS j INDEXED BY windrow_job_live_ready
  WHERE j.state = 'ready' AND j.queue = :queue AND j.priority = head.priority
  ORDER BY j.place
  LIMIT 1
)) AS run_at
FROM head
