-- A follower takes the place of the job it waited for.
-- :seq :state
UPDATE windrow_job_live SET is_follower = 0, state = :state WHERE seq = :seq
