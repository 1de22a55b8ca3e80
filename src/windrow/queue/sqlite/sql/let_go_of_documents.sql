-- The contents of these documents. :ids; :now.
UPDATE windrow_content SET dropped_at = :now
 WHERE id IN (SELECT content FROM windrow_document WHERE id IN (SELECT value FROM json_each(:ids))
              UNION ALL
              SELECT pending FROM windrow_document WHERE id IN (SELECT value FROM json_each(:ids)))
