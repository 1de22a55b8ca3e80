-- A page is found to be still the same. :key, :fetched_at.
UPDATE windrow_page SET fetched_at = :fetched_at
 WHERE key = :key AND fetched_at < :fetched_at
