-- Queues that claims pass over.
-- Returns name.
SELECT name FROM queue WHERE is_paused = 1
