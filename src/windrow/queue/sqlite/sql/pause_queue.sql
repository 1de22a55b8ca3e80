-- A flag that claims look at; no job is touched.
-- :name
INSERT INTO windrow_queue (name, is_paused) VALUES (:name, 1)
ON CONFLICT (name) DO UPDATE SET is_paused = 1
