-- Which workers are alive, and what they take. Unlogged: a row is worth something only until the next
-- heartbeat, which writes it anew.
CREATE UNLOGGED TABLE windrow.worker (
    id uuid PRIMARY KEY,
    started_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    pid integer NOT NULL,
    concurrency integer NOT NULL,
    running integer NOT NULL,
    name text NOT NULL,
    host text NOT NULL,
    version text NOT NULL,
    queues text[],
    kinds text[]
) WITH (fillfactor = 50);

-- Groups are looked for by people: those that run, among all that have ended.
CREATE INDEX job_group_active ON windrow.job_group (id) WHERE state = 'active';
