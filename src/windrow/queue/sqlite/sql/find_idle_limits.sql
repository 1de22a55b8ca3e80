-- The next keys for which nothing is set.
-- :after, the key to begin behind; :limit :now
-- Returns key.
SELECT key
FROM windrow_job_limit
WHERE key > :after AND active IS NULL AND per_second IS NULL
  AND (parked_until IS NULL OR parked_until <= :now)
ORDER BY key
LIMIT :limit
