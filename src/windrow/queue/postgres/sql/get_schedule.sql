-- One schedule, locked, to be changed in the same transaction. :name; :now or null.
-- Returns the schedule, and now.
SELECT *, coalesce(:now::timestamptz, clock_timestamp()) AS now
  FROM windrow.schedule
 WHERE name = :name::text
   FOR UPDATE
