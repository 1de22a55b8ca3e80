-- Rows of finished jobs that are live again, or are deleted.
-- :seqs json array
DELETE FROM windrow_job_finished WHERE seq IN (SELECT value FROM json_each(:seqs))
