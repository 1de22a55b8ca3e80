-- Ready jobs give the places of their limits back: they are held again, before the other held jobs of
-- their keys, and keep their places in the line of their queue. :ids. Returns id. Those that were claimed
-- or locked meanwhile are left as they are.
WITH former AS MATERIALIZED (
    SELECT id FROM windrow.job_live
     WHERE id = ANY (:ids::uuid[]) AND state = 'ready' AND limit_keys IS NOT NULL
       FOR UPDATE SKIP LOCKED
),
returned AS (
    UPDATE windrow.job_live AS job
       SET state = 'held', is_placed = true
     WHERE job.id = ANY (ARRAY(SELECT id FROM former))
    RETURNING job.id, job.queue
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, 'ready' FROM returned GROUP BY queue
     UNION ALL
    SELECT count(*), queue, 'held' FROM returned GROUP BY queue
)
SELECT id FROM returned
