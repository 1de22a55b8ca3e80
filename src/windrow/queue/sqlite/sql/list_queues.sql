-- Every queue that has jobs, is paused or is bounded, with its counts. From the tally: no job is read.
-- Returns queue, is_paused, max_depth, on_full, state, count; state and count are null for a queue
-- without jobs.
SELECT
  t.queue, ifnull(q.is_paused, 0) AS is_paused, q.max_depth, ifnull(q.on_full, 'reject') AS on_full,
  t.state, t.count
FROM windrow_tally AS t LEFT JOIN windrow_queue AS q ON q.name = t.queue
WHERE t.count <> 0
UNION ALL
SELECT name, is_paused, max_depth, ifnull(on_full, 'reject'), NULL, NULL FROM windrow_queue
WHERE is_paused = 1 OR max_depth IS NOT NULL
ORDER BY 1
