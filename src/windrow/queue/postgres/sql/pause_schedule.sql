-- Fire no more slots of a schedule. :name. Returns the schedule.
UPDATE windrow.schedule SET is_paused = true WHERE name = :name::text RETURNING *
