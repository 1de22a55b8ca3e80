-- Who may use the HTTP API. Of a key only the SHA-256 is kept; `tenant` is empty where it is one of
-- all tenants.
CREATE TABLE windrow_api_key (
  name TEXT NOT NULL PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
