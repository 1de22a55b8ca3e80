-- Ready jobs are held again. :ids. Those that were claimed meanwhile run on, and those that carry no
-- keys any more stay ready: nobody would promote them.
WITH former AS MATERIALIZED (
    SELECT id FROM windrow.job_live
     WHERE id = ANY (:ids::uuid[]) AND state = 'ready' AND limit_keys IS NOT NULL
     ORDER BY id
       FOR UPDATE
),
demoted AS (
    UPDATE windrow.job_live AS job
       SET state = 'held'
     WHERE job.id = ANY (ARRAY(SELECT id FROM former))
    RETURNING job.queue
)
INSERT INTO windrow.tally (n, queue, state)
SELECT -count(*), queue, 'ready' FROM demoted GROUP BY queue
 UNION ALL
SELECT count(*), queue, 'held' FROM demoted GROUP BY queue
