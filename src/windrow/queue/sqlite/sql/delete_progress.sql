-- The progress of deleted jobs.
-- :seqs json array
DELETE FROM windrow_job_progress WHERE seq IN (SELECT value FROM json_each(:seqs))
