-- Remove jobs without a trace, apart from blobs. :ids of unclaimed or finished ones, locked before.
-- Returns id, before, queue, group_id, root_of, unique_key, and hash, the blob of its result. A root's
-- progress is written by those who have its group, so it goes after that.
-- gate tenant
WITH gone AS (
    DELETE FROM windrow.job AS job
     WHERE job.id = ANY (:ids::uuid[]) AND job.state NOT IN ('active', 'waiting')
    RETURNING job.id, job.state, job.queue, job.group_id, job.root_of, job.unique_key,
              job.result_hash
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
SELECT id, state AS before, queue, group_id, root_of, unique_key, result_hash AS hash FROM gone
