-- Who may use the HTTP API. Of a key only the SHA-256 is kept; `tenant` is empty where it is one of
-- all tenants. Only the owner and workers read this: no tenant's role is given anything.
CREATE TABLE windrow.api_key (
    name text PRIMARY KEY,
    hash text NOT NULL UNIQUE,
    tenant text NOT NULL,
    role text NOT NULL,
    created_at timestamptz NOT NULL
);
