-- The error history of jobs, oldest first.
-- :seqs json array
-- Returns seq, at, reason, type, message, traceback.
SELECT seq, at, reason, type, message, traceback
FROM windrow_job_error
WHERE seq IN (SELECT value FROM json_each(:seqs))
ORDER BY number
