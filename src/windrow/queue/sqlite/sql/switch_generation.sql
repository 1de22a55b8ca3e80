-- Searches read the generation that was built from now on, if it is this one.
-- :tenant :name :generation. Returns name.
UPDATE windrow_collection
   SET embedder = next_embedder, dimension = next_dimension, generation = next_generation,
       next_embedder = NULL, next_dimension = NULL, next_generation = NULL
 WHERE tenant = :tenant AND name = :name AND next_generation = :generation
RETURNING name
