-- What jobs of a group note for whoever looks at it later, such as the pages that a crawl passed over.
-- Written in the transaction that completes the job, each once, and gone with the group.
CREATE TABLE windrow_group_note (
  group_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (group_id, subject, text)
) WITHOUT ROWID;
