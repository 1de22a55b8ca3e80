-- The first claimable job of each queue, whatever its kind, tenant or group.
-- :queues json array of names
-- Returns queue, priority, place.
SELECT q.value, j.priority, j.place
FROM json_each(:queues) AS q
CROSS JOIN windrow_job_live AS j ON j.seq = (
  SELECT head.seq FROM windrow_job_live AS head INDEXED BY windrow_job_live_ready
  WHERE head.queue = q.value AND head.state = 'ready'
  ORDER BY head.priority DESC, head.place
  LIMIT 1
)
