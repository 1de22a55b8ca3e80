-- Finished jobs by id.
-- :ids json array
-- Returns seq, id, queue, state, tenant, group_id, unique_key, finished_at.
SELECT seq, id, queue, state, tenant, group_id, unique_key, finished_at FROM windrow_job_finished
WHERE id IN (SELECT value FROM json_each(:ids))
