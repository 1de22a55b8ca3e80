-- Another generation of a collection is to be built, in the place of one that was being built.
-- :tenant :name :embedder :dimension.
UPDATE windrow.collection
   SET next_embedder = :embedder::text, next_dimension = :dimension::integer,
       next_generation = greatest(generation, next_generation) + 1
 WHERE tenant = :tenant::text AND name = :name::text
