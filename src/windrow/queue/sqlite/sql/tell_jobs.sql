-- Active jobs are asked to stop (or, with null, to go on).
-- :seqs json array, :stop_as, :error null to keep the former
UPDATE windrow_job_live SET stop_as = :stop_as, error = coalesce(:error, error)
WHERE seq IN (SELECT value FROM json_each(:seqs))
