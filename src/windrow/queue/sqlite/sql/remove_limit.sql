-- Forget what is set for a key. Its row stays while slots of its jobs may; `prune_limits` removes it.
-- :key
UPDATE windrow_job_limit
SET active = NULL, per_second = NULL, burst = NULL, tokens = NULL,
  refilled_at = NULL, parked_until = NULL
WHERE key = :key
