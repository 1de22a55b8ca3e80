-- A collection, unless it is there. :tenant :name :embedder :dimension; :now.
INSERT OR IGNORE INTO windrow_collection
       (tenant, name, embedder, dimension, generation, created_at)
VALUES (:tenant, :name, :embedder, :dimension, 1, :now)
