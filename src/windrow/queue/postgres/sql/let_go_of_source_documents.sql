-- The contents of a source. :tenant :collection :source; :now.
UPDATE windrow.content SET dropped_at = coalesce(:now::timestamptz, statement_timestamp())
 WHERE id IN (SELECT content FROM windrow.document WHERE tenant = :tenant::text AND collection = :collection::text AND source = :source::text
              UNION ALL
              SELECT pending FROM windrow.document WHERE tenant = :tenant::text AND collection = :collection::text AND source = :source::text)
