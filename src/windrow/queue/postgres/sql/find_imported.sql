-- What came from a place before. :origin, :keys. Returns key, checksum, job_id, imported_at.
SELECT key, checksum, job_id, imported_at
  FROM windrow.imported
 WHERE origin = :origin::text AND key = ANY (:keys::text[])
