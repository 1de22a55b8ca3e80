-- What happened, as a stream that can be read from any place on. One row tells of all jobs that were
-- moved alike by one call, by the 16 bytes of each id; readers take it apart. AUTOINCREMENT: a number
-- is not given out again when its event was removed.
CREATE TABLE windrow_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  state TEXT,
  queue TEXT,
  kind TEXT,
  tenant TEXT,
  group_id TEXT,
  job_ids BLOB,
  details TEXT
);
