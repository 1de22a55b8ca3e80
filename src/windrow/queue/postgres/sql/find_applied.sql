-- Which ends of runs were written before: the job still names the run's token and is not active.
-- :ids and :tokens. Returns id.
SELECT given.id
  FROM unnest(:ids::uuid[], :tokens::uuid[]) AS given (id, token)
 CROSS JOIN LATERAL (
       SELECT FROM windrow.job
        WHERE job.id = given.id AND job.lease = given.token AND job.state <> 'active'
       OFFSET 0) AS job
