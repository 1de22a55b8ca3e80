-- Collections, by tenant and name. :tenant (null: of all), :name (null: any).
SELECT tenant, name, embedder, dimension, generation, next_embedder, next_dimension, next_generation,
       created_at
  FROM windrow.collection
 WHERE (:tenant::text IS NULL OR tenant = :tenant) AND (:name::text IS NULL OR name = :name)
 ORDER BY tenant, name
