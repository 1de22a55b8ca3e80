-- Stop claims from a queue. :name.
INSERT INTO windrow.queue (name, is_paused) VALUES (:name::text, true)
    ON CONFLICT (name) DO UPDATE SET is_paused = true
