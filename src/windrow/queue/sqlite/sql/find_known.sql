-- Jobs that are there already under the ids of new ones.
-- :ids json array of ids
-- Returns id, seq, state, run_at, created_at.
SELECT id, seq, state, run_at, created_at FROM windrow_job_live
WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id, seq, state, run_at, created_at FROM windrow_job_finished
WHERE id IN (SELECT value FROM json_each(:ids))
