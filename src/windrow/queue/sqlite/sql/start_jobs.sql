-- Claimed jobs become active under a lease.
-- :seqs json array, :token, :now
UPDATE windrow_job_live
SET state = 'active', lease = :token, started_at = :now, runs = runs + 1, stop_as = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs))
