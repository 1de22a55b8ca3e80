-- What came from a place before.
-- :origin :keys (json array)
-- Returns key, checksum, job_id, imported_at.
SELECT key, checksum, job_id, imported_at
FROM windrow_imported
WHERE origin = :origin AND key IN (SELECT value FROM json_each(:keys))
