-- How many of a tenant's newest jobs are in each queue and state. :tenant; :most, of how many
-- Returns queue, state, n.
SELECT queue, state, count(*) AS n FROM (
  SELECT j.id, j.queue, j.state FROM windrow_job_live AS j WHERE j.tenant = :tenant
  UNION ALL
  SELECT j.id, j.queue, j.state FROM windrow_job_finished AS j WHERE j.tenant = :tenant
  ORDER BY 1 DESC
  LIMIT :most
)
GROUP BY queue, state
