-- Bound a queue, or no longer. :name; :max_depth or null; :on_full.
-- A row that says nothing is left: it counts as none.
INSERT INTO windrow.queue (name, is_paused, max_depth, on_full)
VALUES (:name::text, false, :max_depth::integer, :on_full::text)
    ON CONFLICT (name) DO UPDATE SET max_depth = excluded.max_depth, on_full = excluded.on_full
