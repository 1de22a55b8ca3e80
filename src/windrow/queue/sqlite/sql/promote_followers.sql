-- A follower takes the place of the job it waited for.
-- :seq :state :run_at
UPDATE windrow_job_live SET is_follower = 0, state = :state, run_at = :run_at WHERE seq = :seq
