-- Rows of another queue that are taken in now; those that were before are left as they are. Who takes
-- in the same ones at the same time waits here. :origin, :rows (JSON array of key, checksum, job_id);
-- :now or null. Returns key, of the new ones.
INSERT INTO windrow.imported (origin, key, checksum, job_id, imported_at)
SELECT :origin::text, key, checksum, job_id, coalesce(:now::timestamptz, statement_timestamp())
  FROM json_to_recordset(:rows::text::json) AS given (key text, checksum text, job_id uuid)
 ORDER BY key
    ON CONFLICT DO NOTHING
RETURNING key
