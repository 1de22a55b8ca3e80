-- Recordings of calls on their way to a transcript and what is made of it. `status` says which stage
-- they are in, `error` why it failed, `note` what is missing of the recording. `analysed_from` names
-- what the analysis, a JSON object, was made of.
CREATE TABLE windrow_call (
  id TEXT NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  collection TEXT NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  error TEXT,
  seconds REAL,
  note TEXT,
  analysis TEXT,
  analysed_from TEXT,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX windrow_call_tenant ON windrow_call (tenant, created_at);

-- What is kept of a call in the store of artifacts, by the name of its part.
CREATE TABLE windrow_call_artifact (
  call TEXT NOT NULL,
  name TEXT NOT NULL,
  key TEXT NOT NULL,
  size INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (call, name)
) WITHOUT ROWID;
