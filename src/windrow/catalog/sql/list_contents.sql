-- A page of the ids of a collection's contents; with a space, of those that are not written there.
-- takes tenant tenant, collection text, space text, after uuid, limit int
-- gives id uuid
SELECT id
  FROM windrow.content
 WHERE tenant = :tenant AND collection = :collection AND id > :after
   AND (:space IS NULL OR space {is_not} :space)
 ORDER BY id
 LIMIT :limit
