-- The crash of jobs is counted, and the token of the worker that lost them forgotten.
-- :seqs json array
UPDATE windrow_job_live SET crashes = crashes + 1, lease = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs))
