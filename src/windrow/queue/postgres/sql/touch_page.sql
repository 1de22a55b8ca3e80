-- A page is found to be still the same. :key, :fetched_at.
UPDATE windrow.page SET fetched_at = :fetched_at::timestamptz
 WHERE key = :key::bytea AND fetched_at < :fetched_at::timestamptz
