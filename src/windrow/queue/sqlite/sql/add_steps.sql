-- Keep what a step of a job gave back, once.
-- :seq :name :at :result
INSERT INTO windrow_job_step (seq, name, at, result) VALUES (:seq, :name, :at, :result)
ON CONFLICT (seq, name) DO NOTHING
