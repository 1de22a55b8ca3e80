-- Failed jobs by their error, most frequent first. :queue or null; :limit;
-- :newest, of how many failed jobs, or null: of all.
-- Returns error, n, first_at, last_at, example (an id).
SELECT coalesce(error, '') AS error, count(*) AS n, min(finished_at) AS first_at,
       max(finished_at) AS last_at, (array_agg(id ORDER BY id DESC))[1] AS example
  FROM (SELECT id, queue, error, finished_at
          FROM windrow.job_finished
         WHERE state = 'failed'
         ORDER BY id DESC
         LIMIT :newest::integer) AS failed
 WHERE (:queue::text IS NULL OR queue = :queue)
 GROUP BY coalesce(error, '')
 ORDER BY n DESC, last_at DESC
 LIMIT :limit::integer
