-- Texts by their ids. :ids.
SELECT id, tenant, collection, chunks, space, dropped_at, created_at, text
  FROM windrow_content
 WHERE id IN (SELECT value FROM json_each(:ids))
 ORDER BY id
