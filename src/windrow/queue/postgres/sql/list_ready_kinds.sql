-- The kinds of the first :limit ready jobs of each queue, in the order of the claim's index.
-- Returns queue, kind, count, example.
WITH RECURSIVE lane AS (
    (SELECT queue FROM windrow.job_live WHERE state = 'ready' ORDER BY queue LIMIT 1)
     UNION ALL
    SELECT (SELECT job.queue
              FROM windrow.job_live AS job
             WHERE job.state = 'ready' AND job.queue > lane.queue
             ORDER BY job.queue
             LIMIT 1)
      FROM lane
     WHERE lane.queue IS NOT NULL
)
SELECT lane.queue, first.kind, count(*) AS count, min(first.id::text) AS example
  FROM lane
 CROSS JOIN LATERAL (
       SELECT job.kind, job.id
         FROM windrow.job_live AS job
        WHERE job.state = 'ready' AND job.queue = lane.queue
        ORDER BY job.priority DESC, job.seq
        LIMIT :limit::integer) AS first
 GROUP BY lane.queue, first.kind
 ORDER BY lane.queue COLLATE "C", first.kind COLLATE "C"
