-- Stop a key for a time, or (null) no longer.
-- :key :until
INSERT INTO windrow_job_limit (key, parked_until) VALUES (:key, :until)
ON CONFLICT (key) DO UPDATE SET parked_until = excluded.parked_until
