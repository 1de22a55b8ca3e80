-- Failed jobs by their error text, most frequent first.
-- :queue or null, :limit; :newest, of how many failed jobs, or -1: of all
-- Returns error, count, first_at, last_at, example.
SELECT
  ifnull(error, '') AS error, count(*) AS count, min(finished_at) AS first_at,
  max(finished_at) AS last_at, max(id) AS example
FROM (
  SELECT id, queue, error, finished_at FROM windrow_job_finished INDEXED BY windrow_job_finished_state
  WHERE state IN ('failed', 'cancelled') AND state = 'failed'
  ORDER BY id DESC LIMIT :newest
)
WHERE :queue IS NULL OR queue = :queue
GROUP BY 1
ORDER BY 2 DESC, 4 DESC
LIMIT :limit
