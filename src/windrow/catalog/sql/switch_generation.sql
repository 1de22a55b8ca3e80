-- Let searches read the generation that was built, if it is this one.
-- takes tenant tenant, name text, generation int
-- gives name text
UPDATE windrow.collection
   SET embedder = next_embedder, dimension = next_dimension, generation = next_generation,
       next_embedder = NULL, next_dimension = NULL, next_generation = NULL
 WHERE tenant = :tenant AND name = :name AND next_generation = :generation
RETURNING name
