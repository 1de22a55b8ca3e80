-- A large result, kept once however many jobs have it.
-- :hash :body
INSERT INTO windrow_blob (hash, body) VALUES (:hash, :body) ON CONFLICT (hash) DO NOTHING
