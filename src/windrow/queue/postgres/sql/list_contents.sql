-- A page of the ids of a collection's texts that are not in a place of the index. :tenant
-- :collection; :space (null: wherever they are); behind :after; :limit.
SELECT id
  FROM windrow.content
 WHERE tenant = :tenant::text AND collection = :collection::text AND id > :after::uuid
   AND (:space::text IS NULL OR space IS DISTINCT FROM :space)
 ORDER BY id
 LIMIT :limit::integer
