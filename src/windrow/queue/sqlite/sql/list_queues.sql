-- Every queue that has jobs or is paused, with its counts. From the tally: no job is read.
-- Returns queue, is_paused, state, count; state and count are null for a paused queue without jobs.
SELECT t.queue, ifnull(q.is_paused, 0) AS is_paused, t.state, t.count
FROM windrow_tally AS t LEFT JOIN windrow_queue AS q ON q.name = t.queue
WHERE t.count <> 0
UNION ALL
SELECT name, is_paused, NULL, NULL FROM windrow_queue
WHERE is_paused = 1
ORDER BY 1
