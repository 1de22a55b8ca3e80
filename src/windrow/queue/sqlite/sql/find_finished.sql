-- Finished jobs by id.
-- :ids json array
-- Returns seq, id, queue, state, tenant, group_id, unique_key, finished_at, limit_keys.
SELECT seq, id, queue, state, tenant, group_id, unique_key, finished_at, limit_keys FROM windrow_job_finished
WHERE id IN (SELECT value FROM json_each(:ids))
