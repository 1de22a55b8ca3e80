-- Texts that no document names, once the index has nothing of them. :ids. Returns id.
DELETE FROM windrow.content
 WHERE id = ANY (:ids::uuid[]) AND dropped_at IS NOT NULL
   AND NOT EXISTS (SELECT FROM windrow.document WHERE document.content = content.id)
   AND NOT EXISTS (SELECT FROM windrow.document WHERE document.pending = content.id)
RETURNING id
