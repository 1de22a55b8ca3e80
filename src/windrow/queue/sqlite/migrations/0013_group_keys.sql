-- Keys of a group's members, which it takes once and never again, however their jobs ended; and how
-- many members it takes at all. Ids are kept as 16 bytes, and a key as the 16 bytes of its hash.
CREATE TABLE windrow_group_key (
  group_id BLOB NOT NULL,
  key BLOB NOT NULL,
  job_id BLOB NOT NULL,
  PRIMARY KEY (group_id, key)
) WITHOUT ROWID;

ALTER TABLE windrow_job_group ADD COLUMN max_jobs INTEGER;
