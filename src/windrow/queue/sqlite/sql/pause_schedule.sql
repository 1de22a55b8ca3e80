-- Fire no more slots of a schedule.
-- :name
-- Returns the schedule.
UPDATE windrow_schedule SET is_paused = 1 WHERE name = :name RETURNING *
