-- What sites must be shown to let one in, sealed with a key that is not here. `tenant` is empty where
-- there is none. Only workers and the owner read this: no tenant's role is given anything.
CREATE TABLE windrow.credential (
    tenant text NOT NULL,
    name text NOT NULL,
    origin text NOT NULL,
    holds text[] NOT NULL,
    sealed bytea NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, name)
);
