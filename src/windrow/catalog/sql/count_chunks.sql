-- The number of chunks of each of these contents.
-- takes ids uuid[]
-- gives id uuid, chunks int
SELECT id, chunks FROM windrow.content WHERE id {in ids}
