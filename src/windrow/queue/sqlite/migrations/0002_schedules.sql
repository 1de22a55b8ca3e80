-- Schedules: for every slot (next_at, then the one after it, …) a job like the one in `job` is
-- inserted. And leaders: who does what only one may do, until when.

CREATE TABLE windrow_schedule (
  name TEXT PRIMARY KEY,
  cron TEXT,
  timezone TEXT NOT NULL,
  every_seconds REAL,
  jitter_seconds REAL NOT NULL,
  catch_up TEXT NOT NULL,
  is_paused INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER,
  last_at INTEGER,
  created_at INTEGER NOT NULL,
  job TEXT NOT NULL
);

CREATE INDEX windrow_schedule_due ON windrow_schedule (next_at) WHERE is_paused = 0;

CREATE TABLE windrow_leader (
  role TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
