-- Texts that no document names, once the index has nothing of them. :ids. Returns id.
DELETE FROM windrow_content
 WHERE id IN (SELECT value FROM json_each(:ids)) AND dropped_at IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM windrow_document WHERE content = windrow_content.id)
   AND NOT EXISTS (SELECT 1 FROM windrow_document WHERE pending = windrow_content.id)
RETURNING id
