-- Schedules have fired slots, or passed them over.
-- :names, :next_ats, :last_ats arrays (the last slots fired, or null: none was).
UPDATE windrow.schedule AS schedule
   SET next_at = moved.next_at, last_at = coalesce(moved.last_at, schedule.last_at)
  FROM unnest(:names::text[], :next_ats::timestamptz[], :last_ats::timestamptz[])
       AS moved (name, next_at, last_at)
 WHERE schedule.name = moved.name
