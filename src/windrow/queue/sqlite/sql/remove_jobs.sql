-- Rows of jobs that were copied to the finished ones, or are deleted.
-- :seqs json array
DELETE FROM windrow_job_live WHERE seq IN (SELECT value FROM json_each(:seqs))
