-- Change what a schedule is made of; a pause and the last slot fired stay.
-- :name :cron :timezone :every_seconds :jitter_seconds :catch_up :job (json) :next_at
-- Returns the schedule.
UPDATE windrow_schedule
SET cron = :cron, timezone = :timezone, every_seconds = :every_seconds,
  jitter_seconds = :jitter_seconds, catch_up = :catch_up, job = :job, next_at = :next_at
WHERE name = :name
RETURNING *
