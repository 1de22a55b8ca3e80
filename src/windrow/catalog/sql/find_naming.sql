-- The documents that name one of these contents, as searchable or as pending.
-- takes ids uuid[]
-- gives document
SELECT {columns document}
  FROM windrow.document AS document
 WHERE id IN (SELECT id FROM windrow.document WHERE content {in ids}
               UNION ALL
              SELECT id FROM windrow.document WHERE pending {in ids})
 ORDER BY id
