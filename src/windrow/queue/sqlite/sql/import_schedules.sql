-- A schedule as it was elsewhere; one of that name stays as it is.
-- Its columns.
INSERT INTO windrow_schedule (
  name, cron, timezone, every_seconds, jitter_seconds, catch_up, is_paused, next_at, last_at,
  created_at, job
)
VALUES (
  :name, :cron, :timezone, :every_seconds, :jitter_seconds, :catch_up, :is_paused, :next_at,
  :last_at, :created_at, :job
)
ON CONFLICT (name) DO NOTHING
