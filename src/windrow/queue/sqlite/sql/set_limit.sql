-- Make or change a limit. A bucket that is larger now fills up from what it has.
-- :key :active :per_second :burst
INSERT INTO windrow_job_limit (key, active, per_second, burst)
VALUES (:key, :active, :per_second, :burst)
ON CONFLICT (key) DO UPDATE
SET active = excluded.active, per_second = excluded.per_second, burst = excluded.burst
