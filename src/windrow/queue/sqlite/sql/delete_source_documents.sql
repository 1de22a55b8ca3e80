-- The documents of a source. :tenant :collection :source. Returns id.
DELETE FROM windrow_document WHERE tenant = :tenant AND collection = :collection AND source = :source RETURNING id
