-- The history of deleted jobs.
-- :seqs json array
DELETE FROM windrow_job_error WHERE seq IN (SELECT value FROM json_each(:seqs))
