-- A waiting job takes the contents of a newer one; it keeps its id, its place and its history.
-- :seq :queue :kind :state :priority :run_at :max_attempts :max_crashes :lease_seconds
-- :retention_seconds :limit_keys :fair_key :max_hold_seconds
UPDATE windrow_job_live
SET queue = :queue, kind = :kind, state = :state, priority = :priority, run_at = :run_at,
  max_attempts = :max_attempts, max_crashes = :max_crashes, lease_seconds = :lease_seconds,
  retention_seconds = :retention_seconds, limit_keys = :limit_keys, fair_key = :fair_key,
  max_hold_seconds = :max_hold_seconds, attempts = 0, crashes = 0
WHERE seq = :seq
