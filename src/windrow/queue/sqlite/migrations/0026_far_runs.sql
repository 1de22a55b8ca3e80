-- Runs of jobs whose queue is elsewhere, in BullMQ, and whose rows are here: the last run that wrote,
-- and, once one has ended, how (JSON): that is written with its rows, and stands.
CREATE TABLE windrow_far_run (
  key TEXT NOT NULL PRIMARY KEY,
  run INTEGER NOT NULL,
  ended TEXT,
  kept_at INTEGER NOT NULL
) WITHOUT ROWID;
