-- Keep a new API key. Nothing is written if its name is taken.
-- :name :hash :tenant (empty: all) :role :now
INSERT INTO windrow_api_key (name, hash, tenant, role, created_at)
VALUES (:name, :hash, :tenant, :role, :now)
ON CONFLICT DO NOTHING
