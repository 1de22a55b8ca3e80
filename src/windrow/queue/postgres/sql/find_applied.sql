-- Which ends of runs were written before: the job still names the run's token and is not active.
-- :ids and :tokens. Returns id, state, and result or result_hash: a run may have ended otherwise.
SELECT given.id, job.state, job.result::text AS result, job.result_hash
  FROM unnest(:ids::uuid[], :tokens::uuid[]) AS given (id, token)
 CROSS JOIN LATERAL (
       SELECT job.state, job.result, job.result_hash
         FROM windrow.job
        WHERE job.id = given.id AND job.lease = given.token AND job.state <> 'active'
       OFFSET 0) AS job
