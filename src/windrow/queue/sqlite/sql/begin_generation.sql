-- Another generation of a collection is to be built, in the place of one that was being built.
-- :tenant :name :embedder :dimension.
UPDATE windrow_collection
   SET next_embedder = :embedder, next_dimension = :dimension,
       next_generation = max(generation, coalesce(next_generation, 0)) + 1
 WHERE tenant = :tenant AND name = :name
