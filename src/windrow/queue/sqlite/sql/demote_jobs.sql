-- Ready jobs are held again.
-- :seqs json array
UPDATE windrow_job_live SET state = 'held' WHERE seq IN (SELECT value FROM json_each(:seqs))
