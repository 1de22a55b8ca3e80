-- A new schedule, whose next slot is not known yet; one that is there already stays as it is. Either
-- way it is locked, so that two who put it at once do so one after the other.
-- :name, :cron, :timezone, :every_seconds, :jitter_seconds, :catch_up, :job (a JobRow); :now or null.
-- Returns the schedule as it is now, and now.
INSERT INTO windrow.schedule (
    name, cron, timezone, every_seconds, jitter_seconds, catch_up, created_at, job)
VALUES (:name::text, :cron::text, :timezone::text, :every_seconds::double precision,
        :jitter_seconds::double precision, :catch_up::text,
        coalesce(:now::timestamptz, statement_timestamp()), :job::json)
    ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING *, coalesce(:now::timestamptz, clock_timestamp()) AS now
