-- Schedules as they were elsewhere; one of that name stays as it is. :rows, a JSON array of columns.
INSERT INTO windrow.schedule (
    name, cron, timezone, every_seconds, jitter_seconds, catch_up, is_paused, next_at, last_at,
    created_at, job)
SELECT name, cron, timezone, every_seconds, jitter_seconds, catch_up, is_paused, next_at, last_at,
       created_at, job::json
  FROM json_to_recordset(:rows::text::json) AS given (
       name text, cron text, timezone text, every_seconds double precision,
       jitter_seconds double precision, catch_up text, is_paused boolean, next_at timestamptz,
       last_at timestamptz, created_at timestamptz, job text)
 ORDER BY name
    ON CONFLICT (name) DO NOTHING
