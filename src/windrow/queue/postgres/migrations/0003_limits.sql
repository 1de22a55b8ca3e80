-- Limits per key, and bounded queues.
--
-- A job that carries limit keys waits `held` until promotion makes it ready. Its first key is its
-- fairness key, by which held jobs are found. What a key has in use is never kept as a number: it
-- is counted from job_live, where job_slot says to look. A slot is written by promotion with the
-- job it makes ready, and means nothing once that job is neither ready nor active.

ALTER TABLE windrow.job ADD COLUMN limit_keys text[], ADD COLUMN max_hold_seconds bigint;

CREATE INDEX job_live_held ON windrow.job_live ((limit_keys[1]), priority DESC, seq)
    WHERE state = 'held' AND NOT is_follower;
CREATE INDEX job_live_hold ON windrow.job_live (max_hold_seconds, run_at)
    WHERE state = 'held' AND NOT is_follower AND max_hold_seconds IS NOT NULL;

CREATE TABLE windrow.job_limit (
    key text PRIMARY KEY,
    active integer,
    per_second double precision,
    burst integer,
    weight double precision NOT NULL DEFAULT 1,
    tokens double precision,
    refilled_at timestamptz,
    parked_until timestamptz,
    turn double precision NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX job_limit_parked ON windrow.job_limit (key) WHERE parked_until IS NOT NULL;

CREATE TABLE windrow.job_slot (
    key text NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (key, job_id)
);

ALTER TABLE windrow.queue ADD COLUMN max_depth integer, ADD COLUMN on_full text;
CREATE INDEX queue_bounded ON windrow.queue (name) WHERE max_depth IS NOT NULL;
