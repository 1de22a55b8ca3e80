-- What tenants may use of the HTTP API in a period, and what they have used. Only the owner and
-- workers read and write this: no tenant's role is given anything.
CREATE TABLE windrow.quota (
    tenant text PRIMARY KEY,
    credits bigint NOT NULL,
    per text NOT NULL  -- day or month, by UTC
);

-- Credits that were used in the period that began at `period`, without those of open runs.
CREATE TABLE windrow.usage (
    tenant text NOT NULL,
    period timestamptz NOT NULL,
    credits bigint NOT NULL,
    PRIMARY KEY (tenant, period)
);

-- Groups whose members are paid for: while a run is open its group's row has the count, then the
-- usage has. It stays for a while, closed, so that it is not opened again.
CREATE TABLE windrow.usage_run (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    period timestamptz NOT NULL,
    is_open boolean NOT NULL DEFAULT true
);
CREATE INDEX usage_run_tenant ON windrow.usage_run (tenant, period);
