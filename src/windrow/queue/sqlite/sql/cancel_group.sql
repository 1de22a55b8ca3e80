-- A running group takes no more members and will end as cancelled.
-- :id :reason
UPDATE windrow_job_group SET is_cancelled = 1, is_open = 0, reason = :reason
WHERE id = :id AND ended_at IS NULL AND NOT is_cancelled
