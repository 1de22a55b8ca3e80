-- Blobs that no result names any more.
-- :hashes json array
DELETE FROM blob
WHERE hash IN (SELECT value FROM json_each(:hashes))
  AND NOT EXISTS (SELECT 1 FROM job_result AS r WHERE r.blob_hash = blob.hash)
