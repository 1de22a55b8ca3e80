-- The kinds of the first :limit ready jobs of a queue, in the order of the claim's index.
-- :queue :limit
-- Returns queue, kind, count, example.
SELECT :queue AS queue, kind, count(*) AS count, min(id) AS example
FROM (
  SELECT j.kind, j.id FROM windrow_job_live AS j INDEXED BY windrow_job_live_ready
  WHERE j.state = 'ready' AND j.queue = :queue
  ORDER BY j.priority DESC, j.place
  LIMIT :limit
)
GROUP BY kind
ORDER BY kind
