-- Results of jobs, those in blobs too.
-- :seqs json array
-- Returns seq, result, blob_hash, body, is_cleaned.
SELECT r.seq, r.result, r.blob_hash, b.body, r.is_cleaned
FROM windrow_job_result AS r
LEFT JOIN windrow_blob AS b ON b.hash = r.blob_hash
WHERE r.seq IN (SELECT value FROM json_each(:seqs))
