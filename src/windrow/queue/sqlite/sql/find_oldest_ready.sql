-- When the oldest claimable job of a queue became due. Steps from one priority to the next and looks
-- at the first few jobs of each: they stand in the order they came, but one that came back has a
-- later time.
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
  SELECT min(first.run_at) FROM (
    SELECT j.run_at FROM windrow_job_live AS j INDEXED BY windrow_job_live_ready
    WHERE j.state = 'ready' AND j.queue = :queue AND j.priority = head.priority
    ORDER BY j.place
    LIMIT 20
  ) AS first
)) AS run_at
FROM head
