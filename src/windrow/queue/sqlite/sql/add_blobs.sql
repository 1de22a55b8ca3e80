-- A large result, kept once however many jobs have it.
-- :hash :body
INSERT INTO blob (hash, body) VALUES (:hash, :body) ON CONFLICT (hash) DO NOTHING
