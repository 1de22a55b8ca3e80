-- Sources by their ids. :tenant (null: of whichever tenant), :ids.
SELECT tenant, id, collection, kind, uri, title, options, tags, refresh_seconds, etag, last_modified,
       error, created_at, refreshed_at
  FROM windrow_source
 WHERE id IN (SELECT value FROM json_each(:ids)) AND (:tenant IS NULL OR tenant = :tenant)
 ORDER BY tenant, id
