-- Unclaimed jobs wait for a person.
-- :seqs json array
UPDATE windrow_job_live SET state = 'paused' WHERE seq IN (SELECT value FROM json_each(:seqs))
