-- Let a queue be claimed again. :name. Its other settings stay.
UPDATE windrow.queue SET is_paused = false WHERE name = :name::text
