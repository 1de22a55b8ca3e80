-- Make or change a limit. A bucket that is larger now fills up from what it has.
-- :key :active :per_second :burst :weight
INSERT INTO windrow_job_limit (key, active, per_second, burst, weight)
VALUES (:key, :active, :per_second, :burst, :weight)
ON CONFLICT (key) DO UPDATE
SET active = excluded.active, per_second = excluded.per_second, burst = excluded.burst,
  weight = excluded.weight
