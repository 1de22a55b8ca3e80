-- Delete dropped contents that no document names, once the index has nothing of them.
-- takes ids uuid[]
-- gives id uuid
DELETE FROM windrow.content AS dropped
 WHERE id {in ids} AND dropped_at IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM windrow.document AS document WHERE document.content = dropped.id)
   AND NOT EXISTS (SELECT 1 FROM windrow.document AS document WHERE document.pending = dropped.id)
RETURNING id
