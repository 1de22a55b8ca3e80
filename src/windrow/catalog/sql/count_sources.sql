-- Count the documents of each source, the first `most` by address (null: all of them). Without
-- with_chunks no content is read: no content has a null id.
-- each tenant tenant, collection text, source text
-- takes most int, with_chunks bool
-- gives documents int, searchable int, pending int, skipped int, size int, chunks int
SELECT count(CASE WHEN skipped IS NULL OR coalesce(content, pending) IS NOT NULL THEN 1 END) AS documents,
       count(content) AS searchable,
       count(CASE WHEN skipped IS NULL THEN pending END) AS pending,
       count(skipped) AS skipped, CAST(coalesce(sum(size), 0) AS bigint) AS size,
       CAST(coalesce(sum(chunks), 0) AS bigint) AS chunks
  FROM (SELECT document.content, document.pending, document.skipped, document.size,
               content.chunks
          FROM windrow.document AS document
          LEFT JOIN windrow.content AS content
            ON content.id = CASE WHEN :with_chunks THEN document.content END
         WHERE document.tenant = :tenant AND document.collection = :collection
           AND document.source = :source
         ORDER BY document.uri, document.branch
         LIMIT {limit most}) AS counted
