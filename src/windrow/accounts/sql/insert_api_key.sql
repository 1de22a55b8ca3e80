-- Insert an API key unless its name or its hash is taken.
-- takes name text, hash text, tenant tenant, role text
-- gives name text
INSERT INTO windrow.api_key (name, hash, tenant, role, created_at)
VALUES (:name, :hash, :tenant, :role, {now})
ON CONFLICT DO NOTHING
RETURNING name
