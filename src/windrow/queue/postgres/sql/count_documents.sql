-- How much there is in each source. :tenant (null: of all), :collection (null: any). Returns tenant,
-- collection, source, documents, searchable, pending, skipped, size, chunks.
SELECT document.tenant, document.collection, document.source,
       count(CASE WHEN document.skipped IS NULL OR coalesce(document.content, document.pending) IS NOT NULL
                  THEN 1 END) AS documents,
       count(document.content) AS searchable,
       count(CASE WHEN document.skipped IS NULL THEN document.pending END) AS pending,
       count(document.skipped) AS skipped, sum(document.size)::bigint AS size,
       coalesce(sum(content.chunks), 0) AS chunks
  FROM windrow.document AS document
  LEFT JOIN windrow.content AS content ON content.id = document.content
 WHERE (:tenant::text IS NULL OR document.tenant = :tenant)
   AND (:collection::text IS NULL OR document.collection = :collection)
 GROUP BY document.tenant, document.collection, document.source
 ORDER BY document.tenant, document.collection, document.source
