-- A new schedule, whose next slot is not known yet; one that is there already stays as it is.
-- :name :cron :timezone :every_seconds :jitter_seconds :catch_up :job (json) :now
-- Returns the schedule as it is now.
INSERT INTO windrow_schedule (
  name, cron, timezone, every_seconds, jitter_seconds, catch_up, created_at, job
)
VALUES (:name, :cron, :timezone, :every_seconds, :jitter_seconds, :catch_up, :now, :job)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING *
