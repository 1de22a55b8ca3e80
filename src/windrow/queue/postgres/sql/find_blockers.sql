-- Who holds the unique keys that finished jobs would need. :ids. Returns id, blocked_by.
-- gate tenant
SELECT job.id, holder.id AS blocked_by
  FROM windrow.job_finished AS job
 CROSS JOIN LATERAL (
       SELECT live.id
         FROM windrow.job_live AS live
        WHERE live.unique_key = job.unique_key
          AND live.tenant IS NOT DISTINCT FROM job.tenant
          AND NOT live.is_follower
       OFFSET 0) AS holder
 WHERE job.id = ANY (:ids::uuid[])
