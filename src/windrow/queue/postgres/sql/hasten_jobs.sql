-- Scheduled jobs are due now. :ids, locked before; :now or null. Returns id, queue, after.
-- gate tenant
WITH hastened AS (
    UPDATE windrow.job_live AS job
       SET state = CASE WHEN job.limit_keys IS NULL THEN 'ready' ELSE 'held' END,
           run_at = coalesce(:now::timestamptz, statement_timestamp())
     WHERE job.id = ANY (:ids::uuid[]) AND job.state = 'scheduled'
    RETURNING job.id, job.queue, job.state
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, 'scheduled' FROM hastened GROUP BY queue
     UNION ALL
    SELECT count(*), queue, state FROM hastened GROUP BY queue, state
)
SELECT id, queue, state AS after FROM hastened
