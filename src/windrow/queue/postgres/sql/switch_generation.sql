-- Searches read the generation that was built from now on, if it is this one.
-- :tenant :name :generation. Returns name.
UPDATE windrow.collection
   SET embedder = next_embedder, dimension = next_dimension, generation = next_generation,
       next_embedder = NULL, next_dimension = NULL, next_generation = NULL
 WHERE tenant = :tenant::text AND name = :name::text AND next_generation = :generation::integer
RETURNING name
