-- The contents of a source. :tenant :collection :source; :now.
UPDATE windrow_content SET dropped_at = :now
 WHERE id IN (SELECT content FROM windrow_document WHERE tenant = :tenant AND collection = :collection AND source = :source
              UNION ALL
              SELECT pending FROM windrow_document WHERE tenant = :tenant AND collection = :collection AND source = :source)
