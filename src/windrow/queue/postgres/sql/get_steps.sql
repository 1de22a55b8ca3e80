-- What is kept of the steps of jobs, oldest first. :ids. Returns job_id, name, at, result.
SELECT job_id, name, at, result
  FROM windrow.job_step
 WHERE job_id = ANY (:ids::uuid[])
 ORDER BY job_id, at, name
