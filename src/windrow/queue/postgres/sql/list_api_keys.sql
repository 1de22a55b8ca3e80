-- All API keys, by name.
SELECT name, hash, tenant, role, created_at FROM windrow.api_key ORDER BY name COLLATE "C"
