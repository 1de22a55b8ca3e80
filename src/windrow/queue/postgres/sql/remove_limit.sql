-- Forget a key's limits. :key. Returns it if it had any.
-- A row that only kept its turn counts as none, and goes too.
DELETE FROM windrow.job_limit WHERE key = :key::text
RETURNING key, active IS NOT NULL OR per_second IS NOT NULL OR weight <> 1 AS was_set
