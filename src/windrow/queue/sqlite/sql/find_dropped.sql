-- Texts that a document has let go of, and whether another names them. :limit. Returns id, tenant,
-- collection, space, is_named.
SELECT id, tenant, collection, space,
       EXISTS (SELECT 1 FROM windrow_document WHERE content = windrow_content.id)
       OR EXISTS (SELECT 1 FROM windrow_document WHERE pending = windrow_content.id) AS is_named
  FROM windrow_content
 WHERE dropped_at IS NOT NULL
 ORDER BY id
 LIMIT :limit
