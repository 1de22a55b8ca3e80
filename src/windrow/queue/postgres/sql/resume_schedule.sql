-- Go on with a schedule, beginning with a slot. :name, :next_at. Returns the schedule.
UPDATE windrow.schedule
   SET is_paused = false, next_at = :next_at::timestamptz
 WHERE name = :name::text
RETURNING *
