-- Jobs go back to wait. The lease stays: a repeated finish is recognised by it.
-- :seqs json array, :state, :run_at, :error null to keep the former, :attempts to add
UPDATE windrow_job_live
SET state = :state, run_at = :run_at, error = coalesce(:error, error), attempts = attempts + :attempts,
  stop_as = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs))
