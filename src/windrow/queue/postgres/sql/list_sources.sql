-- A page of sources, by tenant and id. :tenant (null: of all), :collection (null: any);
-- behind :after_tenant and :after_id; :limit.
SELECT tenant, id, collection, kind, uri, title, options, tags, refresh_seconds, etag, last_modified,
       error, created_at, refreshed_at
  FROM windrow.source
 WHERE (tenant, id) > (:after_tenant::text, :after_id::text)
   AND (:tenant::text IS NULL OR tenant = :tenant)
   AND (:collection::text IS NULL OR collection = :collection)
 ORDER BY tenant, id
 LIMIT :limit::integer
