-- The steps of deleted jobs, or of jobs that begin anew.
-- :seqs json array
DELETE FROM windrow_job_step WHERE seq IN (SELECT value FROM json_each(:seqs))
