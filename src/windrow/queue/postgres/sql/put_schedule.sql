-- Change what a schedule is made of; a pause and the last slot fired stay.
-- :name, :cron, :timezone, :every_seconds, :jitter_seconds, :catch_up, :job (a JobRow), :next_at.
-- Returns the schedule.
UPDATE windrow.schedule
   SET cron = :cron::text,
       timezone = :timezone::text,
       every_seconds = :every_seconds::double precision,
       jitter_seconds = :jitter_seconds::double precision,
       catch_up = :catch_up::text,
       job = :job::json,
       next_at = :next_at::timestamptz
 WHERE name = :name::text
RETURNING *
