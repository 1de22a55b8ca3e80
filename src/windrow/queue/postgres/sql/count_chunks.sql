-- How many chunks each of these contents has. :ids. Returns id, chunks.
SELECT id, chunks FROM windrow.content WHERE id = ANY (:ids::uuid[])
