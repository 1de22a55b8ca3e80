-- How many of a tenant's newest jobs are in each queue and state. :tenant; :most, of how many.
-- Returns queue, state, n. The tenant as a range, for one index: `listings.py` says why.
SELECT queue, state, count(*) AS n
  FROM (SELECT job.queue, job.state
          FROM windrow.job
         WHERE job.tenant >= :tenant::text AND job.tenant <= :tenant
         ORDER BY job.tenant DESC, job.id DESC
         LIMIT :most::integer) AS newest
 GROUP BY queue, state
