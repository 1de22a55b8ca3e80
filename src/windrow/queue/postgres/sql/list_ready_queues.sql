-- The queues that have ready jobs and are not paused, one index probe for each.
-- Returns queue.
WITH RECURSIVE found AS (
    (SELECT queue FROM windrow.job_live WHERE state = 'ready' ORDER BY queue LIMIT 1)
     UNION ALL
    SELECT (SELECT job.queue
              FROM windrow.job_live AS job
             WHERE job.state = 'ready' AND job.queue > found.queue
             ORDER BY job.queue
             LIMIT 1)
      FROM found
     WHERE found.queue IS NOT NULL
)
SELECT queue
  FROM found
 WHERE queue IS NOT NULL
   AND queue <> ALL (ARRAY(SELECT name FROM windrow.queue WHERE is_paused))
