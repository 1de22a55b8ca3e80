-- A result, or the hash of the blob that has it.
-- :seq :result :blob_hash :is_cleaned
INSERT INTO windrow_job_result (seq, result, blob_hash, is_cleaned)
VALUES (:seq, :result, :blob_hash, :is_cleaned)
