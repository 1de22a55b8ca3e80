-- Every key that is set, parked, or has jobs. :now or null; :counts_held: whether held jobs are
-- counted, which reads all of them. Returns key, active, per_second, burst, parked_until (in the
-- future, else null), in_use (active jobs), ready (jobs) and the queues of these (ready_queues), held.
WITH held AS (
    SELECT carried.key, count(*) AS n
      FROM windrow.job_live AS job
     CROSS JOIN LATERAL unnest(job.limit_keys) AS carried (key)
     WHERE :counts_held::boolean
       AND job.state = 'held' AND NOT job.is_follower AND job.limit_keys[1] IS NOT NULL
     GROUP BY carried.key
),
used AS (
    SELECT slot.key, count(*) FILTER (WHERE job.state = 'active') AS active,
           count(*) FILTER (WHERE job.state = 'ready') AS ready,
           array_agg(DISTINCT job.queue) FILTER (WHERE job.state = 'ready') AS queues
      FROM windrow.job_slot AS slot
     CROSS JOIN LATERAL (
           SELECT live.state, live.queue
             FROM windrow.job_live AS live
            WHERE live.id = slot.job_id
              AND live.state IN ('ready', 'active')
              AND slot.key = ANY (live.limit_keys)
           OFFSET 0) AS job
     GROUP BY slot.key
)
SELECT key, job_limit.active, per_second, burst,
       CASE WHEN parked_until > coalesce(:now::timestamptz, statement_timestamp())
            THEN parked_until END AS parked_until,
       coalesce(used.active, 0) AS in_use, coalesce(used.ready, 0) AS ready,
       used.queues AS ready_queues, coalesce(held.n, 0) AS held
  FROM windrow.job_limit
  FULL JOIN used USING (key)
  FULL JOIN held USING (key)
 WHERE job_limit.active IS NOT NULL OR per_second IS NOT NULL
    OR parked_until > coalesce(:now::timestamptz, statement_timestamp())
    OR used.active > 0 OR used.ready > 0 OR held.n > 0
 ORDER BY key
