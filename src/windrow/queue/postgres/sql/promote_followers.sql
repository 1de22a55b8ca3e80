-- Followers whose holder is gone take its place: ready (held with limits, for which
-- it waits from now on), or scheduled if not due; a paused one stays paused. :keys, unique keys to look at, or null for all; :limit; :now or null.
-- Returns queue, state of each.
-- gate enqueue
WITH orphan AS MATERIALIZED (
    SELECT job.id
      FROM windrow.job_live AS job
     WHERE job.is_follower
       AND (:keys::text[] IS NULL OR job.unique_key = ANY (:keys))
       AND NOT EXISTS (
           SELECT FROM windrow.job_live AS holder
            WHERE holder.unique_key = job.unique_key
              AND holder.tenant IS NOT DISTINCT FROM job.tenant
              AND NOT holder.is_follower)
     LIMIT :limit::integer
       FOR UPDATE SKIP LOCKED
),
promoted AS (
    UPDATE windrow.job_live AS job
       SET is_follower = false,
           state = CASE WHEN job.state <> 'held' THEN job.state
                        WHEN job.run_at > coalesce(:now::timestamptz, statement_timestamp())
                        THEN 'scheduled'
                        WHEN job.limit_keys IS NOT NULL THEN 'held'
                        ELSE 'ready' END,
           run_at = CASE WHEN job.limit_keys IS NULL THEN job.run_at
                         ELSE greatest(job.run_at,
                                       coalesce(:now::timestamptz, statement_timestamp())) END
     WHERE job.id = ANY (ARRAY(SELECT id FROM orphan))
    RETURNING job.queue, job.state
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, 'held' FROM promoted WHERE state <> 'paused' GROUP BY queue
     UNION ALL
    SELECT count(*), queue, state FROM promoted WHERE state <> 'paused' GROUP BY queue, state
)
SELECT queue, state FROM promoted
