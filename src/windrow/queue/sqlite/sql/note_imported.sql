-- Rows of another queue that are taken in now; those that were before are left as they are.
-- :origin :rows (json array of key, checksum, job_id) :now
-- Returns key, of the new ones.
INSERT INTO windrow_imported (origin, key, checksum, job_id, imported_at)
SELECT :origin, value ->> 'key', value ->> 'checksum', value ->> 'job_id', :now
FROM json_each(:rows)
WHERE true
ORDER BY value ->> 'key'
ON CONFLICT DO NOTHING
RETURNING key
