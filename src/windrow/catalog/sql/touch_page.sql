-- Record that a cached page was found unchanged.
-- takes key bytes, fetched_at time
UPDATE windrow.page SET fetched_at = :fetched_at
 WHERE key = :key AND fetched_at < :fetched_at
