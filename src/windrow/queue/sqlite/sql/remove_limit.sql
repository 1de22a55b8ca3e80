-- Forget a key's limits. A row that only kept its turn counts as none, and goes too.
-- :key
-- Returns was_set.
DELETE FROM windrow_job_limit WHERE key = :key
RETURNING active IS NOT NULL OR per_second IS NOT NULL OR weight <> 1
