-- The results of jobs, or the hashes of the blobs that have them.
-- :seqs json array
-- Returns seq, result, blob_hash.
SELECT seq, result, blob_hash
FROM windrow_job_result
WHERE seq IN (SELECT value FROM json_each(:seqs))
