-- Scheduled jobs are due now. :ids, locked before; :now or null. Returns id, queue.
WITH hastened AS (
    UPDATE windrow.job_live AS job
       SET state = 'ready',
           run_at = coalesce(:now::timestamptz, statement_timestamp())
     WHERE job.id = ANY (:ids::uuid[]) AND job.state = 'scheduled'
    RETURNING job.id, job.queue
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, 'scheduled' FROM hastened GROUP BY queue
     UNION ALL
    SELECT count(*), queue, 'ready' FROM hastened GROUP BY queue
)
SELECT id, queue FROM hastened
