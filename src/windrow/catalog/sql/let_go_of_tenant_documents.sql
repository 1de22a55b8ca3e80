-- Mark the contents of a tenant's documents as dropped.
-- takes tenant tenant
UPDATE windrow.content SET dropped_at = {now}
 WHERE id IN (SELECT content FROM windrow.document WHERE tenant = :tenant
               UNION ALL
              SELECT pending FROM windrow.document WHERE tenant = :tenant)
