-- What came from a place, by key.
-- :origin :after (a key, or '') :limit
-- Returns key, checksum, job_id, imported_at.
SELECT key, checksum, job_id, imported_at
FROM windrow_imported
WHERE origin = :origin AND key > :after
ORDER BY key
LIMIT :limit
