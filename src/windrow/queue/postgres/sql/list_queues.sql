-- Whether queues are paused, and since when their oldest ready job waits. :queues that have jobs.
-- Returns name, is_paused, oldest_ready_at, max_depth, on_full; paused and bounded queues without
-- jobs too.
-- The oldest is looked for among the first few of each priority, one index probe per priority:
-- jobs are in the order of their arrival there, but one that came back has a later time.
WITH RECURSIVE rung AS (
    SELECT lane.queue, first.priority
      FROM unnest(:queues::text[]) AS lane (queue)
     CROSS JOIN LATERAL (
           SELECT priority FROM windrow.job_live
            WHERE state = 'ready' AND queue = lane.queue
            ORDER BY priority DESC
            LIMIT 1) AS first
     UNION ALL
    SELECT rung.queue, next.priority
      FROM rung
     CROSS JOIN LATERAL (
           SELECT priority FROM windrow.job_live
            WHERE state = 'ready' AND queue = rung.queue AND priority < rung.priority
            ORDER BY priority DESC
            LIMIT 1) AS next
),
oldest AS (
    SELECT rung.queue, min(job.run_at) AS run_at
      FROM rung
     CROSS JOIN LATERAL (
           SELECT run_at FROM windrow.job_live
            WHERE state = 'ready' AND queue = rung.queue AND priority = rung.priority
            ORDER BY seq
            LIMIT 20) AS job
     GROUP BY rung.queue
)
SELECT name, coalesce(flag.is_paused, false) AS is_paused, oldest.run_at AS oldest_ready_at,
       flag.max_depth, coalesce(flag.on_full, 'reject') AS on_full
  FROM (SELECT unnest(:queues::text[]) AS name
         UNION
        SELECT name FROM windrow.queue WHERE is_paused OR max_depth IS NOT NULL) AS named
  LEFT JOIN windrow.queue AS flag USING (name)
  LEFT JOIN oldest ON oldest.queue = name
 ORDER BY name
