-- Record that a generation of a collection is being built, in place of one that was being built.
-- takes tenant tenant, name text, embedder text, dimension int
-- gate tenant
UPDATE windrow.collection
   SET next_embedder = :embedder, next_dimension = :dimension,
       next_generation = {greatest}(generation, coalesce(next_generation, 0)) + 1
 WHERE tenant = :tenant AND name = :name
