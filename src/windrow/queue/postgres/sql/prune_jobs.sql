-- Remove finished jobs of a leaf with all that is kept of them, apart from blobs. {leaf}; :ids;
-- :is_forced: even those whose time is not over; :now or null. Returns id, hash, the blob of its
-- result. Whether their time is over is asked again: they may have been retried and ended meanwhile.
WITH gone AS (
    DELETE FROM windrow.{leaf} AS job
     WHERE job.id = ANY (:ids::uuid[])
       AND (:is_forced::boolean
            OR job.expires_at <= coalesce(:now::timestamptz, statement_timestamp())
            OR EXISTS (
                   SELECT FROM windrow.job_group
                    WHERE job_group.id = job.group_id
                      AND job_group.expires_at
                          <= coalesce(:now::timestamptz, statement_timestamp())
                   OFFSET 0))
    RETURNING job.id, job.state, job.queue, job.root_of, job.result_hash
),
unstored AS (
    DELETE FROM windrow.job_payload WHERE id = ANY (ARRAY(SELECT id FROM gone))
),
forgotten AS (
    DELETE FROM windrow.job_error WHERE job_id = ANY (ARRAY(SELECT id FROM gone))
),
unstepped AS (
    DELETE FROM windrow.job_step WHERE job_id = ANY (ARRAY(SELECT id FROM gone))
),
unreported AS (
    DELETE FROM windrow.job_progress WHERE id = ANY (ARRAY(SELECT id FROM gone))
),
rootless AS (
    UPDATE windrow.job_group SET root = NULL WHERE id = ANY (ARRAY(SELECT root_of FROM gone))
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, state FROM gone GROUP BY queue, state
)
SELECT id, result_hash AS hash FROM gone
