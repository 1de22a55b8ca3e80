-- The queues whose jobs are kept for other times than the defaults.
-- Returns name, completed_seconds, failed_seconds, cancelled_seconds.
SELECT name, completed_seconds, failed_seconds, cancelled_seconds FROM windrow_queue
WHERE coalesce(completed_seconds, failed_seconds, cancelled_seconds) IS NOT NULL
ORDER BY name
