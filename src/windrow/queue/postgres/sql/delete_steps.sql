-- Forget the steps of jobs that begin anew. :ids.
DELETE FROM windrow.job_step WHERE job_id = ANY (:ids::uuid[])
