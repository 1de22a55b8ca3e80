-- Forget what is set for a key. :key, locked. Its row stays, because slots of its jobs may, which
-- are counted and removed under its lock; `prune_limits` removes it when they are gone.
UPDATE windrow.job_limit
   SET active = NULL, per_second = NULL, burst = NULL, tokens = NULL,
       refilled_at = NULL, parked_until = NULL
 WHERE key = :key::text
