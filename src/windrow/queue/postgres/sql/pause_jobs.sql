-- Set unclaimed jobs aside. :ids, locked before. Returns id.
-- gate tenant
WITH former AS MATERIALIZED (
    SELECT id, queue, state
      FROM windrow.job_live
     WHERE id = ANY (:ids::uuid[]) AND state IN ('scheduled', 'held', 'ready')
),
paused AS (
    UPDATE windrow.job_live AS job
       SET state = 'paused'
     WHERE job.id = ANY (ARRAY(SELECT id FROM former))
    RETURNING job.id, job.queue
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, state FROM former GROUP BY queue, state
     UNION ALL
    SELECT count(*), queue, 'paused' FROM paused GROUP BY queue
)
SELECT id FROM paused
