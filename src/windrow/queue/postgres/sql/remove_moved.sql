-- Remove jobs that were moved elsewhere, apart from blobs. :ids, locked before, none of them active.
-- Returns unique_key (none of followers) and hash, the blob of its result.
WITH gone AS (
    DELETE FROM windrow.job AS job
     WHERE job.id = ANY (:ids::uuid[]) AND job.state <> 'active'
    RETURNING job.id, job.state, job.queue, job.unique_key, job.is_follower, job.result_hash
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
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, state FROM gone GROUP BY queue, state
)
SELECT CASE WHEN NOT is_follower THEN unique_key END AS unique_key, result_hash AS hash FROM gone
