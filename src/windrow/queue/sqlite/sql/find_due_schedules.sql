-- Schedules whose next slot has come, the longest due first.
-- :now :limit
SELECT * FROM windrow_schedule INDEXED BY windrow_schedule_due
WHERE is_paused = 0 AND next_at <= :now
ORDER BY next_at
LIMIT :limit
