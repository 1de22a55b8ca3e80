-- The queues whose jobs are kept for other times than the defaults.
-- Returns name, completed_seconds, failed_seconds, cancelled_seconds.
SELECT name, completed_seconds, failed_seconds, cancelled_seconds
  FROM windrow.queue
 WHERE num_nonnulls(completed_seconds, failed_seconds, cancelled_seconds) > 0
 ORDER BY name
