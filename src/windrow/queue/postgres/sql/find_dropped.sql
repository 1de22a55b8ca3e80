-- Texts that a document has let go of, and whether another names them. :limit. Returns id, tenant,
-- collection, space, is_named.
SELECT id, tenant, collection, space,
       EXISTS (SELECT FROM windrow.document WHERE document.content = content.id)
       OR EXISTS (SELECT FROM windrow.document WHERE document.pending = content.id) AS is_named
  FROM windrow.content
 WHERE dropped_at IS NOT NULL
 ORDER BY id
 LIMIT :limit::integer
