-- Collections, by tenant and name. :tenant (null: of all), :name (null: any).
SELECT tenant, name, embedder, dimension, generation, next_embedder, next_dimension, next_generation,
       created_at
  FROM windrow_collection
 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:name IS NULL OR name = :name)
 ORDER BY tenant, name
