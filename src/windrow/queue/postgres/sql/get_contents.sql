-- Texts by their ids. :ids.
SELECT id, tenant, collection, chunks, space, dropped_at, created_at, text
  FROM windrow.content
 WHERE id = ANY (:ids::uuid[])
 ORDER BY id
