-- Count the documents of each source that has some. Null stands for all tenants and for any
-- collection. Reads every document.
-- takes tenant text, collection text
-- gives tenant tenant, collection text, source text, documents int, searchable int, pending int,
--   skipped int, size int, chunks int
SELECT document.tenant, document.collection, document.source,
       count(CASE WHEN document.skipped IS NULL OR coalesce(document.content, document.pending) IS NOT NULL
                  THEN 1 END) AS documents,
       count(document.content) AS searchable,
       count(CASE WHEN document.skipped IS NULL THEN document.pending END) AS pending,
       count(document.skipped) AS skipped, CAST(sum(document.size) AS bigint) AS size,
       coalesce(sum(content.chunks), 0) AS chunks
  FROM windrow.document AS document
  LEFT JOIN windrow.content AS content ON content.id = document.content
 WHERE (:tenant IS NULL OR document.tenant = :tenant)
   AND (:collection IS NULL OR document.collection = :collection)
 GROUP BY document.tenant, document.collection, document.source
 ORDER BY document.tenant, document.collection, document.source
