-- Runs go back to wait: ready at once (held with limits), scheduled after a delay, or paused if they were asked to.
-- :ids, :tokens, :delays in seconds, :errors or null, :uses_attempts; :now or null.
-- Returns for each run id, queue, and where it went (state). A null state: it may not wait, because
-- it was asked to end (stop_as) or because a follower is there for its place (follower_id); it was
-- left as it is, locked, to be ended.
WITH run AS MATERIALIZED (
    SELECT given.*, job.queue, job.stop_as, follower.id AS follower_id
      FROM unnest(:ids::uuid[], :tokens::uuid[], :delays::double precision[], :errors::text[],
                  :uses_attempts::boolean[])
           AS given (id, token, delay, error, uses_attempt)
     CROSS JOIN LATERAL (
           SELECT live.queue, live.stop_as, live.unique_key, live.tenant
             FROM windrow.job_live AS live
            WHERE live.id = given.id AND live.lease = given.token AND live.state = 'active'
              FOR UPDATE) AS job
      LEFT JOIN LATERAL (
           SELECT live.id
             FROM windrow.job_live AS live
            WHERE live.is_follower
              AND live.unique_key = job.unique_key
              AND live.tenant IS NOT DISTINCT FROM job.tenant
           OFFSET 0) AS follower ON true
),
returned AS (
    UPDATE windrow.job_live AS job
       SET state = CASE WHEN run.stop_as = 'paused' THEN 'paused'
                        WHEN run.delay > 0 THEN 'scheduled'
                        WHEN job.limit_keys IS NOT NULL THEN 'held'
                        ELSE 'ready' END,
           run_at = coalesce(:now::timestamptz, statement_timestamp())
                    + greatest(run.delay, 0) * interval '1 second',
           attempts = job.attempts + run.uses_attempt::integer,
           error = coalesce(run.error, job.error),
           stop_as = NULL
      FROM run
     WHERE job.id = run.id
       AND run.follower_id IS NULL
       AND run.stop_as IS DISTINCT FROM 'cancelled'
    RETURNING job.id, job.queue, job.state
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, 'active' FROM returned GROUP BY queue
     UNION ALL
    SELECT count(*), queue, state FROM returned GROUP BY queue, state
)
SELECT run.id, run.queue, run.stop_as, run.follower_id, returned.state
  FROM run LEFT JOIN returned USING (id)
