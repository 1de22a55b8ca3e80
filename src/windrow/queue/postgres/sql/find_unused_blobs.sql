-- Blobs that no result refers to, left by runs that were refused. :limit. Returns hash.
SELECT hash
  FROM windrow.blob
 WHERE NOT EXISTS (SELECT FROM windrow.job WHERE job.result_hash = blob.hash OFFSET 0)
 LIMIT :limit::bigint
