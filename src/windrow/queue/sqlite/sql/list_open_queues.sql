-- Those of the given queues that are not paused.
-- :queues json array of names
-- Returns queue.
SELECT DISTINCT value AS queue FROM json_each(:queues)
WHERE value NOT IN (SELECT name FROM queue WHERE is_paused = 1)
