-- What came from elsewhere: rows of other queues' tables, by the place they came from and their key
-- there, so that none is taken in twice, whatever has become of its job.
CREATE TABLE windrow_imported (
  origin TEXT NOT NULL,
  key TEXT NOT NULL,
  checksum TEXT NOT NULL,
  job_id TEXT,
  imported_at INTEGER NOT NULL,
  PRIMARY KEY (origin, key)
) WITHOUT ROWID;
