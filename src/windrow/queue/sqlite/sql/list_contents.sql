-- A page of the ids of a collection's texts that are not in a place of the index. :tenant
-- :collection; :space (null: wherever they are); behind :after; :limit.
SELECT id
  FROM windrow_content
 WHERE tenant = :tenant AND collection = :collection AND id > :after
   AND (:space IS NULL OR space IS NOT :space)
 ORDER BY id
 LIMIT :limit
