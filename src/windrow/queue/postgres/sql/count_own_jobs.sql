-- The jobs that the session may see, by queue and state: for a tenant, to whom the tally says nothing.
-- Returns queue, state, n, oldest_at (of ready ones), is_paused. Reads every job of the tenant.
-- gate tenant
SELECT job.queue, job.state, count(*) AS n,
       min(job.run_at) FILTER (WHERE job.state = 'ready') AS oldest_at,
       coalesce((SELECT is_paused FROM windrow.queue WHERE queue.name = job.queue), false) AS is_paused
  FROM windrow.job
 GROUP BY job.queue, job.state
 ORDER BY job.queue
