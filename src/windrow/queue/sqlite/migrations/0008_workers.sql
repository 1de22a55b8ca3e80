-- Which workers are alive, and what they take. `queues` and `kinds` are JSON arrays.
CREATE TABLE windrow_worker (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  queues TEXT,
  kinds TEXT,
  concurrency INTEGER NOT NULL,
  running INTEGER NOT NULL,
  version TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Groups are looked for by people: those that run, among all that have ended.
CREATE INDEX windrow_job_group_active ON windrow_job_group (id) WHERE state = 'active';
