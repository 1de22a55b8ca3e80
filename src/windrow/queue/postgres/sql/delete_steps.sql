-- Forget the steps of jobs that begin anew. :ids.
-- gate tenant
DELETE FROM windrow.job_step WHERE job_id = ANY (:ids::uuid[])
