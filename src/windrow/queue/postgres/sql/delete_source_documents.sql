-- The documents of a source. :tenant :collection :source. Returns id.
DELETE FROM windrow.document WHERE tenant = :tenant::text AND collection = :collection::text AND source = :source::text RETURNING id
