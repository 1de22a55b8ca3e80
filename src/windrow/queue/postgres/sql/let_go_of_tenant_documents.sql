-- The contents of a tenant. :tenant; :now.
UPDATE windrow.content SET dropped_at = coalesce(:now::timestamptz, statement_timestamp())
 WHERE id IN (SELECT content FROM windrow.document WHERE tenant = :tenant::text
              UNION ALL
              SELECT pending FROM windrow.document WHERE tenant = :tenant::text)
