-- Texts that were dropped and are named by some document. :ids.
UPDATE windrow_content SET dropped_at = NULL
 WHERE id IN (SELECT value FROM json_each(:ids))
   AND (EXISTS (SELECT 1 FROM windrow_document WHERE content = windrow_content.id)
        OR EXISTS (SELECT 1 FROM windrow_document WHERE pending = windrow_content.id))
