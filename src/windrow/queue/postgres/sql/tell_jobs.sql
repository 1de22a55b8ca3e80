-- Ask running jobs to stop. :ids; :stop_as 'paused' or 'cancelled'; :reason or null.
-- A job asked to end is not asked to pause instead, and keeps the first reason.
-- Returns id, root_of.
-- gate tenant
UPDATE windrow.job_live AS job
   SET stop_as = CASE WHEN job.stop_as = 'cancelled' THEN job.stop_as ELSE :stop_as::text END,
       error = CASE WHEN job.stop_as = 'cancelled' THEN job.error
                    ELSE coalesce(:reason::text, job.error) END
 WHERE job.id = ANY (:ids::uuid[]) AND job.state = 'active'
RETURNING job.id, job.root_of
