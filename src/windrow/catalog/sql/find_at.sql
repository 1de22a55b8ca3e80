-- Documents at an address, of any source, of one tenant or (null) of any. Each source is looked
-- up by its place.
-- takes uri text, tenant text, limit int
-- gives document
SELECT {columns document}
  FROM windrow.source AS source
 {inner_join} windrow.document AS document
    ON document.tenant = source.tenant AND document.collection = source.collection
   AND document.source = source.id AND document.uri = :uri
 WHERE (:tenant IS NULL OR source.tenant = :tenant)
 ORDER BY document.tenant, document.collection, document.source, document.branch
 LIMIT :limit
