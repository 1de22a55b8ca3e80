-- Limits per key, and bounded queues.
--
-- A job that carries limit keys waits `held` until promotion makes it ready. Its first key is its
-- fairness key, by which held jobs are found. Promotion also gives it its `place` in the line; that
-- of any other job is its seq. What a key has in use is counted from windrow_job_live, where
-- windrow_job_slot says to look: a slot means nothing once its job is neither ready nor active.

ALTER TABLE windrow_job_live ADD COLUMN limit_keys TEXT;
ALTER TABLE windrow_job_live ADD COLUMN fair_key TEXT;
ALTER TABLE windrow_job_live ADD COLUMN max_hold_seconds INTEGER;
ALTER TABLE windrow_job_live ADD COLUMN place INTEGER;

ALTER TABLE windrow_job_finished ADD COLUMN limit_keys TEXT;
ALTER TABLE windrow_job_finished ADD COLUMN fair_key TEXT;
ALTER TABLE windrow_job_finished ADD COLUMN max_hold_seconds INTEGER;
ALTER TABLE windrow_job_finished ADD COLUMN place INTEGER;

UPDATE windrow_job_live SET place = seq;
UPDATE windrow_job_finished SET place = seq;

DROP INDEX windrow_job_live_ready;
CREATE INDEX windrow_job_live_ready ON windrow_job_live (queue, priority DESC, place)
WHERE state = 'ready';

CREATE INDEX windrow_job_live_held ON windrow_job_live (fair_key, priority DESC, place)
WHERE state = 'held' AND is_follower = 0;

CREATE INDEX windrow_job_live_hold ON windrow_job_live (max_hold_seconds, run_at)
WHERE state = 'held' AND is_follower = 0 AND max_hold_seconds IS NOT NULL;

CREATE TABLE windrow_job_limit (
  key TEXT PRIMARY KEY,
  active INTEGER,
  per_second REAL,
  burst INTEGER,
  weight REAL NOT NULL DEFAULT 1,
  tokens REAL,
  refilled_at INTEGER,
  parked_until INTEGER,
  turn REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE INDEX windrow_job_limit_parked ON windrow_job_limit (key) WHERE parked_until IS NOT NULL;

CREATE TABLE windrow_job_slot (
  key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (key, seq)
) WITHOUT ROWID;

ALTER TABLE windrow_queue ADD COLUMN max_depth INTEGER;
ALTER TABLE windrow_queue ADD COLUMN on_full TEXT;
