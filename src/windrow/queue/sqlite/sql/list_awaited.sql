-- A page of the texts that documents wait for and that the index has not refused. :tenant :collection
-- :source (null: of all); behind :after; :limit. Returns id, tenant.
SELECT DISTINCT pending AS id, tenant
  FROM windrow_document
 WHERE pending > :after AND skipped IS NULL AND (:tenant IS NULL OR tenant = :tenant)
   AND (:collection IS NULL OR collection = :collection) AND (:source IS NULL OR source = :source)
 ORDER BY pending
 LIMIT :limit
