-- What came from a place, by key. :origin, :after (a key, or ''), :limit.
-- Returns key, checksum, job_id, imported_at.
SELECT key, checksum, job_id, imported_at
  FROM windrow.imported
 WHERE origin = :origin::text AND key > :after::text
 ORDER BY key
 LIMIT :limit::bigint
