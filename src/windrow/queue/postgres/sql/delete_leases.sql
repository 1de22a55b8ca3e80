-- Remove leases that hold no active job any more. :tokens.
DELETE FROM windrow.lease
 WHERE lease.token = ANY (:tokens::uuid[])
   AND NOT EXISTS (
       SELECT FROM windrow.job_live AS job
        WHERE job.id = ANY (lease.job_ids)
          AND job.lease = lease.token
          AND job.state = 'active')
