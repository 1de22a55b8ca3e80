-- Roots that have run wait for their group to end.
-- :seqs json array, :attempts to add
UPDATE windrow_job_live SET state = 'waiting', stop_as = NULL, error = NULL, attempts = attempts + :attempts
WHERE seq IN (SELECT value FROM json_each(:seqs))
