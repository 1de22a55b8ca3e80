-- Mark the contents of a source's documents as dropped.
-- takes tenant tenant, collection text, source text
-- gate tenant
UPDATE windrow.content SET dropped_at = {now}
 WHERE id IN (SELECT content FROM windrow.document
               WHERE tenant = :tenant AND collection = :collection AND source = :source
               UNION ALL
              SELECT pending FROM windrow.document
               WHERE tenant = :tenant AND collection = :collection AND source = :source)
