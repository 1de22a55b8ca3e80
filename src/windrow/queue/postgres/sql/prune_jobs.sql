-- Remove finished jobs of a leaf with all that is kept of them, apart from blobs. {leaf}; :ids;
-- :now or null. Returns id, hash, the blob of its result. Whether their time is over is asked again: they may have been retried and ended meanwhile.
-- Jobs that somebody has locked are left for the next time: nobody waits here. A root's progress is
-- written by those who have its group, so it goes after that.
WITH free AS MATERIALIZED (
    SELECT id FROM windrow.{leaf} WHERE id = ANY (:ids::uuid[]) FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM windrow.{leaf} AS job
     WHERE job.id = ANY (ARRAY(SELECT id FROM free))
       AND (job.expires_at <= coalesce(:now::timestamptz, statement_timestamp())
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
rootless AS (
    UPDATE windrow.job_group SET root = NULL WHERE id = ANY (ARRAY(SELECT root_of FROM gone))
    RETURNING id
),
unreported AS (
    DELETE FROM windrow.job_progress
     WHERE id = ANY (ARRAY(SELECT id FROM gone)) AND (SELECT count(*) FROM rootless) >= 0
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, state FROM gone GROUP BY queue, state
)
SELECT id, result_hash AS hash FROM gone
