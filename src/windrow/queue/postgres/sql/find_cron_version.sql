-- The version of pg_cron in this database; nothing if it is not there. Returns version.
SELECT extversion AS version FROM pg_extension WHERE extname = 'pg_cron'
