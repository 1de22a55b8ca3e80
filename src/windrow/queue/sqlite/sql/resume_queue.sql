-- Claims look at the queue again.
-- :name
UPDATE queue SET is_paused = 0 WHERE name = :name
