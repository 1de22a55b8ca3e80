-- Results of jobs; returns the hashes of the blobs they named.
-- :seqs json array
DELETE FROM windrow_job_result WHERE seq IN (SELECT value FROM json_each(:seqs)) RETURNING blob_hash
