-- Keys with their settings, not locked. :keys. Returns the columns of lock_limits.
SELECT key, active, per_second, burst, tokens, refilled_at, parked_until, turn
  FROM windrow.job_limit
 WHERE key = ANY (:keys::text[])
