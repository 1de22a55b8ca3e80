-- Scheduled jobs that are due become ready (held with limits), longest due first. :limit; :now or null.
-- Returns queue, n.
WITH due AS MATERIALIZED (
    SELECT id
      FROM windrow.job_live
     WHERE state = 'scheduled' AND run_at <= coalesce(:now::timestamptz, statement_timestamp())
     ORDER BY run_at
     LIMIT :limit::integer
       FOR UPDATE SKIP LOCKED
),
staged AS (
    UPDATE windrow.job_live AS job
       SET state = CASE WHEN job.limit_keys IS NULL THEN 'ready' ELSE 'held' END
     WHERE job.id = ANY (ARRAY(SELECT id FROM due))
    RETURNING job.queue, job.state
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, 'scheduled' FROM staged GROUP BY queue
     UNION ALL
    SELECT count(*), queue, state FROM staged GROUP BY queue, state
)
SELECT queue, count(*) AS n FROM staged GROUP BY queue
