-- All API keys, by name.
SELECT name, hash, tenant, role, created_at FROM windrow_api_key ORDER BY name
