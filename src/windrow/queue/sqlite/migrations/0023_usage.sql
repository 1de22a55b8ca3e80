-- What tenants may use of the HTTP API in a period, and what they have used.
CREATE TABLE windrow_quota (
  tenant TEXT NOT NULL PRIMARY KEY,
  credits INTEGER NOT NULL,
  per TEXT NOT NULL  -- day or month, by UTC
) WITHOUT ROWID;

-- Credits that were used in the period that began at `period`, without those of open runs.
CREATE TABLE windrow_usage (
  tenant TEXT NOT NULL,
  period INTEGER NOT NULL,
  credits INTEGER NOT NULL,
  PRIMARY KEY (tenant, period)
) WITHOUT ROWID;

-- Groups whose members are paid for: while a run is open its group's row has the count, then the
-- usage has. It stays for a while, closed, so that it is not opened again.
CREATE TABLE windrow_usage_run (
  id TEXT NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  period INTEGER NOT NULL,
  is_open INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;
CREATE INDEX windrow_usage_run_tenant ON windrow_usage_run (tenant, period);
