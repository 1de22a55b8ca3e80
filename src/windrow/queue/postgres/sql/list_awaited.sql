-- A page of the texts that documents wait for and that the index has not refused. :tenant :collection
-- :source (null: of all); behind :after; :limit. Returns id, tenant.
SELECT DISTINCT pending AS id, tenant
  FROM windrow.document
 WHERE pending > :after::uuid AND skipped IS NULL AND (:tenant::text IS NULL OR tenant = :tenant)
   AND (:collection::text IS NULL OR collection = :collection)
   AND (:source::text IS NULL OR source = :source)
 ORDER BY pending
 LIMIT :limit::integer
