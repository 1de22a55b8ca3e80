-- A job that becomes ready carries a key.
-- :key :seq :now
INSERT INTO windrow_job_slot (key, seq, taken_at) VALUES (:key, :seq, :now)
ON CONFLICT DO UPDATE SET taken_at = excluded.taken_at
