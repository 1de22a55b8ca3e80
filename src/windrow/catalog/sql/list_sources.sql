-- A page of sources by tenant and id. Null stands for all tenants and for any collection.
-- takes tenant text, collection text, after_tenant text, after_id text, limit int
-- gives source
SELECT {columns source}
  FROM windrow.source AS source
 WHERE (tenant, id) > (:after_tenant, :after_id)
   AND (:tenant IS NULL OR tenant = :tenant)
   AND (:collection IS NULL OR collection = :collection)
 ORDER BY tenant, id
 LIMIT :limit
