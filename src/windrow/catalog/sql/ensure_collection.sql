-- Create a collection unless it exists.
-- takes tenant tenant, name text, embedder text, dimension int
-- gate tenant
INSERT INTO windrow.collection (tenant, name, embedder, dimension, generation, created_at)
VALUES (:tenant, :name, :embedder, :dimension, 1, {now})
ON CONFLICT (tenant, name) DO NOTHING
