-- The error history of jobs, oldest first. :ids. Returns job_id, at, reason, type, message, traceback.
SELECT job_id, at, reason, type, message, traceback
  FROM windrow.job_error
 WHERE job_id = ANY (:ids::uuid[])
 ORDER BY job_id, place
