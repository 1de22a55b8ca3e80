-- Contents that a document stopped using, and whether another document names them.
-- takes limit int
-- gives id uuid, tenant tenant, collection text, space text, is_named bool
SELECT id, tenant, collection, space,
       EXISTS (SELECT 1 FROM windrow.document AS document WHERE document.content = dropped.id)
       OR EXISTS (SELECT 1 FROM windrow.document AS document WHERE document.pending = dropped.id)
       AS is_named
  FROM windrow.content AS dropped
 WHERE dropped_at IS NOT NULL
 ORDER BY id
 LIMIT :limit
