-- Texts that were dropped and are named by some document. :ids.
UPDATE windrow.content SET dropped_at = NULL
 WHERE id = ANY (:ids::uuid[])
   AND (EXISTS (SELECT FROM windrow.document WHERE document.content = content.id)
        OR EXISTS (SELECT FROM windrow.document WHERE document.pending = content.id))
