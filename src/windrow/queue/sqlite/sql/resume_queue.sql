-- Claims look at the queue again.
-- :name
UPDATE windrow_queue SET is_paused = 0 WHERE name = :name
