-- Finished jobs whose time is over, the soonest first.
-- :now :limit
-- Returns seq, id, queue, state.
SELECT seq, id, queue, state FROM windrow_job_finished
WHERE expires_at IS NOT NULL AND expires_at <= :now
ORDER BY expires_at
LIMIT :limit
