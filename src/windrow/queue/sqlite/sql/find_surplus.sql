-- The ready jobs that carry a key, worst first.
-- :key :limit
-- Returns seq, queue.
SELECT j.seq, j.queue
FROM windrow_job_slot AS s
CROSS JOIN windrow_job_live AS j ON j.seq = s.seq
WHERE s.key = :key AND j.state = 'ready' AND s.key IN (SELECT value FROM json_each(j.limit_keys))
ORDER BY j.priority, j.place DESC
LIMIT :limit
