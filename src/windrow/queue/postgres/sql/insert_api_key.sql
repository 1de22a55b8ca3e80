-- Keep a new API key. Nothing is written if its name is taken.
-- :name, :hash, :tenant (empty: all), :role; :now or null. Returns name if it was written.
INSERT INTO windrow.api_key (name, hash, tenant, role, created_at)
VALUES (:name::text, :hash::text, :tenant::text, :role::text,
        coalesce(:now::timestamptz, statement_timestamp()))
    ON CONFLICT DO NOTHING
RETURNING name
