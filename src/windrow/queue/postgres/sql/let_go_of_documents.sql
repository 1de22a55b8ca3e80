-- The contents of these documents. :ids; :now.
UPDATE windrow.content SET dropped_at = coalesce(:now::timestamptz, statement_timestamp())
 WHERE id IN (SELECT content FROM windrow.document WHERE id = ANY (:ids::uuid[])
              UNION ALL
              SELECT pending FROM windrow.document WHERE id = ANY (:ids::uuid[]))
