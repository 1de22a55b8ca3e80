-- Every key that is set, parked, or has jobs.
-- :now :counts_held whether held jobs are counted, which reads all of them
-- Returns key, active, per_second, burst, parked_until (in the future, else null), in_use
-- (active jobs), ready (jobs), ready_queues (of these, a json array), held.
WITH held AS (
  SELECT k.value AS key, count(*) AS n
  FROM windrow_job_live AS j INDEXED BY windrow_job_live_held
  CROSS JOIN json_each(j.limit_keys) AS k
  WHERE :counts_held AND j.state = 'held' AND j.is_follower = 0
  GROUP BY k.value
),
used AS (
  SELECT
    s.key, sum(j.state = 'active') AS active, sum(j.state = 'ready') AS ready,
    json_group_array(DISTINCT j.queue) FILTER (WHERE j.state = 'ready') AS queues
  FROM windrow_job_slot AS s
  CROSS JOIN windrow_job_live AS j ON j.seq = s.seq
  WHERE j.state IN ('ready', 'active') AND s.key IN (SELECT value FROM json_each(j.limit_keys))
  GROUP BY s.key
),
named AS (
  SELECT key FROM windrow_job_limit
  WHERE active IS NOT NULL OR per_second IS NOT NULL OR parked_until > :now
  UNION
  SELECT key FROM held
  UNION
  SELECT key FROM used
)
SELECT
  named.key, l.active, l.per_second, l.burst,
  CASE WHEN l.parked_until > :now THEN l.parked_until END AS parked_until,
  ifnull(used.active, 0) AS in_use, ifnull(used.ready, 0) AS ready, used.queues AS ready_queues,
  ifnull(held.n, 0) AS held
FROM named
LEFT JOIN windrow_job_limit AS l ON l.key = named.key
LEFT JOIN used ON used.key = named.key
LEFT JOIN held ON held.key = named.key
ORDER BY named.key
