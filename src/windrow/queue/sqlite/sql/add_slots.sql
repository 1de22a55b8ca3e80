-- A job that becomes ready carries a key.
-- :key :seq
INSERT INTO windrow_job_slot (key, seq) VALUES (:key, :seq) ON CONFLICT DO NOTHING
