-- Queues that claims pass over.
-- Returns name.
SELECT name FROM windrow_queue WHERE is_paused = 1
