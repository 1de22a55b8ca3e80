-- Documents at an address, whatever source they are of: each source is looked into by its place.
-- :uri; :tenant (null: of all); :limit.
SELECT document.id, document.tenant, document.collection, document.source, document.uri,
       document.branch, document.title, document.language, document.tags, document.metadata,
       document.content_hash, document.content, document.pending, document.size, document.skipped,
       document.dated_at, document.created_at, document.changed_at
  FROM windrow_source AS source
 CROSS JOIN windrow_document AS document
    ON document.tenant = source.tenant AND document.collection = source.collection
   AND document.source = source.id AND document.uri = :uri
 WHERE (:tenant IS NULL OR source.tenant = :tenant)
 ORDER BY document.tenant, document.collection, document.source, document.branch
 LIMIT :limit
