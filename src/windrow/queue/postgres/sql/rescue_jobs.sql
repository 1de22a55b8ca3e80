-- Jobs of expired leases: the crash is counted, the token forgotten, and they go back to wait.
-- :limit jobs at most; :now or null. Returns for each id, queue, token, worker, crashes, stop_as,
-- follower_id and where it went (state). A null state: it may not wait, because it crashed too often,
-- was asked to end or has a follower; it was left active, locked, to be ended. :returns_only passes
-- over those, with their leases, for somebody who cannot end them.
WITH expired AS MATERIALIZED (
    SELECT token, worker, job_ids
      FROM windrow.lease
     WHERE expires_at <= coalesce(:now::timestamptz, statement_timestamp())
     ORDER BY expires_at
     LIMIT :limit::integer
       FOR UPDATE SKIP LOCKED
),
run AS MATERIALIZED (
    SELECT expired.token, expired.worker, job.*, follower.id AS follower_id
      FROM expired
     CROSS JOIN LATERAL (
           SELECT live.id, live.queue, live.tenant, live.unique_key, live.stop_as,
                  live.crashes + 1 AS crashes,
                  live.crashes + 1 >= live.max_crashes AS is_exhausted
             FROM windrow.job_live AS live
            WHERE live.id = ANY (expired.job_ids)
              AND live.lease = expired.token
              AND live.state = 'active'
              FOR UPDATE SKIP LOCKED) AS job
      LEFT JOIN LATERAL (
           SELECT live.id
             FROM windrow.job_live AS live
            WHERE live.is_follower
              AND live.unique_key = job.unique_key
              AND live.tenant IS NOT DISTINCT FROM job.tenant
           OFFSET 0) AS follower ON true
     WHERE NOT :returns_only::boolean
        OR (follower.id IS NULL
            AND job.stop_as IS DISTINCT FROM 'cancelled'
            AND NOT job.is_exhausted)
     LIMIT :limit::integer
),
rescued AS (
    UPDATE windrow.job_live AS job
       SET state = CASE WHEN run.follower_id IS NOT NULL THEN 'active'
                        WHEN run.stop_as = 'cancelled' THEN 'active'
                        WHEN run.is_exhausted THEN 'active'
                        WHEN run.stop_as = 'paused' THEN 'paused'
                        WHEN job.limit_keys IS NOT NULL THEN 'held'
                        ELSE 'ready' END,
           run_at = CASE WHEN run.follower_id IS NOT NULL OR run.stop_as = 'cancelled'
                           OR run.is_exhausted
                         THEN job.run_at
                         ELSE coalesce(:now::timestamptz, statement_timestamp()) END,
           crashes = run.crashes,
           stop_as = NULL,
           lease = NULL
      FROM run
     WHERE job.id = run.id
    RETURNING job.id, job.queue, nullif(job.state, 'active') AS state
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, 'active' FROM rescued WHERE state IS NOT NULL GROUP BY queue
     UNION ALL
    SELECT count(*), queue, state FROM rescued WHERE state IS NOT NULL GROUP BY queue, state
),
-- A lease of which some jobs were not reached stays, and is found again.
ended AS (
    DELETE FROM windrow.lease
     USING expired
     WHERE lease.token = expired.token
       AND NOT EXISTS (
           SELECT FROM windrow.job_live AS job
            WHERE job.id = ANY (expired.job_ids)
              AND job.lease = expired.token
              AND job.state = 'active'
              AND job.id <> ALL (ARRAY(SELECT id FROM run)))
)
SELECT run.id, run.queue, run.token, run.worker, run.crashes, run.stop_as, run.follower_id,
       run.is_exhausted, rescued.state
  FROM run JOIN rescued USING (id)
