-- What is kept of the steps of jobs, oldest first.
-- :ids json array
-- Returns job_id, name, at, result.
SELECT j.id AS job_id, s.name, s.at, s.result
FROM (
  SELECT id, seq FROM windrow_job_live WHERE id IN (SELECT value FROM json_each(:ids))
  UNION ALL
  SELECT id, seq FROM windrow_job_finished WHERE id IN (SELECT value FROM json_each(:ids))
) AS j
JOIN windrow_job_step AS s ON s.seq = j.seq
ORDER BY j.id, s.at, s.name
