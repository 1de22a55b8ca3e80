-- The contents of a tenant. :tenant; :now.
UPDATE windrow_content SET dropped_at = :now
 WHERE id IN (SELECT content FROM windrow_document WHERE tenant = :tenant
              UNION ALL
              SELECT pending FROM windrow_document WHERE tenant = :tenant)
