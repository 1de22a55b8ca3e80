-- Held jobs that have waited for their limits longer than they may, locked. :limit; :now or null.
-- Returns id, limit_keys, max_hold_seconds. Steps from one length of waiting to the next, and looks
-- at the jobs of each that were due first.
WITH RECURSIVE length AS (
    (SELECT max_hold_seconds AS seconds
       FROM windrow.job_live
      WHERE state = 'held' AND NOT is_follower AND max_hold_seconds IS NOT NULL
      ORDER BY max_hold_seconds
      LIMIT 1)
     UNION ALL
    SELECT (SELECT job.max_hold_seconds
              FROM windrow.job_live AS job
             WHERE job.state = 'held' AND NOT job.is_follower
               AND job.max_hold_seconds > length.seconds
             ORDER BY job.max_hold_seconds
             LIMIT 1)
      FROM length
     WHERE length.seconds IS NOT NULL
)
SELECT job.id, job.limit_keys, job.max_hold_seconds
  FROM length
 CROSS JOIN LATERAL (
       SELECT live.id, live.limit_keys, live.max_hold_seconds
         FROM windrow.job_live AS live
        WHERE live.state = 'held' AND NOT live.is_follower
          AND live.max_hold_seconds = length.seconds
          AND live.run_at <= coalesce(:now::timestamptz, statement_timestamp())
                             - length.seconds * interval '1 second'
        ORDER BY live.run_at
        LIMIT :limit::integer
          FOR UPDATE SKIP LOCKED) AS job
 LIMIT :limit::integer
