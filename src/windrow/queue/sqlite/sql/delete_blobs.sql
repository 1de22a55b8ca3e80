-- Blobs that no result names any more.
-- :hashes json array
DELETE FROM windrow_blob
WHERE hash IN (SELECT value FROM json_each(:hashes))
  AND NOT EXISTS (SELECT 1 FROM windrow_job_result AS r WHERE r.blob_hash = windrow_blob.hash)
