-- A page of the contents that documents wait for and that the index has not refused. Null stands
-- for all tenants, collections and sources.
-- takes tenant text, collection text, source text, after uuid, limit int
-- gives id uuid, tenant tenant
SELECT DISTINCT pending AS id, tenant
  FROM windrow.document
 WHERE pending > :after AND skipped IS NULL AND (:tenant IS NULL OR tenant = :tenant)
   AND (:collection IS NULL OR collection = :collection) AND (:source IS NULL OR source = :source)
 ORDER BY pending
 LIMIT :limit
