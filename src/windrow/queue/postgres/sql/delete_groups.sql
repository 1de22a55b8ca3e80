-- Remove expired groups whose members are gone. :ids; :now or null. Returns id.
-- A member that is just being retried is seen here as finished, or as live: its group stays. A root
-- that is kept longer forgets its group, and may have another one when it runs again.
WITH gone AS (
    DELETE FROM windrow.job_group
     WHERE id = ANY (:ids::uuid[])
       AND expires_at <= coalesce(:now::timestamptz, statement_timestamp())
       AND NOT EXISTS (SELECT FROM windrow.job_finished_kept AS job
                        WHERE job.group_id = job_group.id OFFSET 0)
       AND NOT EXISTS (SELECT FROM windrow.job_live AS job
                        WHERE job.group_id = job_group.id OFFSET 0)
    RETURNING id, root
),
forgotten AS (
    DELETE FROM windrow.group_note WHERE group_id = ANY (ARRAY(SELECT id FROM gone))
),
rootless AS (
    UPDATE windrow.job AS job
       SET root_of = NULL
     WHERE job.id = ANY (ARRAY(SELECT root FROM gone))
       AND job.root_of = ANY (ARRAY(SELECT id FROM gone))
)
SELECT id FROM gone
