-- Steps: what parts of a job's runs gave back, so that a later run need not do them again.
CREATE TABLE windrow_job_step (
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  at INTEGER NOT NULL,
  result TEXT NOT NULL,
  PRIMARY KEY (seq, name)
);
