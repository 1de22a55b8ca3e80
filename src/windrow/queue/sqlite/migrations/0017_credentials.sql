-- What sites must be shown to let one in, sealed with a key that is not here. `tenant` is empty where
-- there is none; `holds` is a JSON array.
CREATE TABLE windrow_credential (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  origin TEXT NOT NULL,
  holds TEXT NOT NULL,
  sealed BLOB NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
