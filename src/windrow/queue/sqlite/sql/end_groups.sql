-- A group ends.
-- :id :state :now
UPDATE windrow_job_group SET state = :state, ended_at = :now, is_open = 0 WHERE id = :id
