-- Bound a queue, or no longer.
-- :name :max_depth (or null) :on_full
INSERT INTO windrow_queue (name, is_paused, max_depth, on_full) VALUES (:name, 0, :max_depth, :on_full)
ON CONFLICT (name) DO UPDATE SET max_depth = excluded.max_depth, on_full = excluded.on_full
