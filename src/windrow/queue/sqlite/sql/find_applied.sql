-- Finished jobs and the token of their last run: a repeated finish is recognised by it.
-- :ids json array
-- Returns id, lease, state, seq.
SELECT id, lease, state, seq
FROM windrow_job_finished
WHERE id IN (SELECT value FROM json_each(:ids))
