-- Remove blobs that no result refers to. :hashes, locked by an earlier statement: only a later
-- snapshot is sure to show the results that were written before the lock.
-- gate tenant
DELETE FROM windrow.blob
 WHERE hash = ANY (:hashes::bytea[])
   AND NOT EXISTS (SELECT FROM windrow.job WHERE job.result_hash = blob.hash OFFSET 0)
