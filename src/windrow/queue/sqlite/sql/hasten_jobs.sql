-- Scheduled jobs become due now.
-- :seqs json array, :now
UPDATE windrow_job_live SET state = CASE WHEN limit_keys IS NULL THEN 'ready' ELSE 'held' END, run_at = :now
WHERE seq IN (SELECT value FROM json_each(:seqs))
