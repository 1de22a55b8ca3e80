-- The states of jobs.
-- :ids json array of ids
-- Returns id, state.
SELECT id, state FROM windrow_job_live WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id, state FROM windrow_job_finished WHERE id IN (SELECT value FROM json_each(:ids))
