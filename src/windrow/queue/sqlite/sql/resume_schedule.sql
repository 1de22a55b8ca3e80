-- Go on with a schedule, beginning with a slot.
-- :name :next_at
-- Returns the schedule.
UPDATE windrow_schedule SET is_paused = 0, next_at = :next_at WHERE name = :name RETURNING *
