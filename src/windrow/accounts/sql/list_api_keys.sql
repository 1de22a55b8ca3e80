-- All API keys by name.
-- gives name text, hash text, tenant tenant, role text, created_at time
SELECT name, hash, tenant, role, created_at FROM windrow.api_key ORDER BY name {binary}
