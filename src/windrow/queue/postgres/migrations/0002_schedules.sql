-- Schedules: for every slot (next_at, then the one after it, …) a job like the one in `job` is
-- inserted. json, not jsonb: the payload is given back as it was spelled.
CREATE TABLE windrow.schedule (
    name text PRIMARY KEY,
    cron text,
    timezone text NOT NULL,
    every_seconds double precision,
    jitter_seconds double precision NOT NULL,
    catch_up text NOT NULL,
    is_paused boolean NOT NULL DEFAULT false,
    next_at timestamptz,
    last_at timestamptz,
    created_at timestamptz NOT NULL,
    job json NOT NULL
);
CREATE INDEX schedule_due ON windrow.schedule (next_at) WHERE NOT is_paused;

-- Who does what only one may do, until when.
CREATE TABLE windrow.leader (
    role text PRIMARY KEY,
    holder text NOT NULL,
    expires_at timestamptz NOT NULL
);
