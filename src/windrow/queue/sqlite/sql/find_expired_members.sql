-- Finished members of an expired group.
-- :group_id :limit
-- Returns seq, id, queue, state.
SELECT seq, id, queue, state FROM windrow_job_finished
WHERE group_id IS NOT NULL AND group_id = :group_id
LIMIT :limit
