-- The queues that have ready jobs and are not paused, each with the place of its first job, one index
-- probe for each. Returns queue, priority, seq.
WITH RECURSIVE found AS (
    (SELECT queue, priority, seq
       FROM windrow.job_live
      WHERE state = 'ready'
      ORDER BY queue, priority DESC, seq
      LIMIT 1)
     UNION ALL
    SELECT next.queue, next.priority, next.seq
      FROM found
     CROSS JOIN LATERAL (
           SELECT job.queue, job.priority, job.seq
             FROM windrow.job_live AS job
            WHERE job.state = 'ready' AND job.queue > found.queue
            ORDER BY job.queue, job.priority DESC, job.seq
            LIMIT 1) AS next
)
SELECT queue, priority, seq
  FROM found
 WHERE queue <> ALL (ARRAY(SELECT name FROM windrow.queue WHERE is_paused))
