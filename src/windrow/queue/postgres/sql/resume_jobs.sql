-- Paused jobs wait again: ready, scheduled if not due, held if a follower or with limits (for which
-- it waits from now on); running ones that were asked to pause may go on. :ids, locked before; :now or null. Returns id, queue, state.
-- gate tenant
WITH resumed AS (
    UPDATE windrow.job_live AS job
       SET state = CASE WHEN job.is_follower THEN 'held'
                        WHEN job.run_at > coalesce(:now::timestamptz, statement_timestamp())
                        THEN 'scheduled'
                        WHEN job.limit_keys IS NOT NULL THEN 'held'
                        ELSE 'ready' END,
           run_at = CASE WHEN job.limit_keys IS NULL OR job.is_follower THEN job.run_at
                         ELSE greatest(job.run_at,
                                       coalesce(:now::timestamptz, statement_timestamp())) END
     WHERE job.id = ANY (:ids::uuid[]) AND job.state = 'paused'
    RETURNING job.id, job.queue, job.state
),
going_on AS (
    UPDATE windrow.job_live AS job
       SET stop_as = NULL
     WHERE job.id = ANY (:ids::uuid[]) AND job.state = 'active' AND job.stop_as = 'paused'
    RETURNING job.id, job.queue, job.state
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, 'paused' FROM resumed GROUP BY queue
     UNION ALL
    SELECT count(*), queue, state FROM resumed GROUP BY queue, state
)
SELECT id, queue, state FROM resumed
 UNION ALL
SELECT id, queue, state FROM going_on
