-- How much there is in one source, counting the first :most of its documents by address at the most
-- (null: all of them). :tenant :collection :source :with_chunks. Returns documents,
-- searchable, pending, skipped, size, chunks; without :with_chunks these are 0 and no content is read.
SELECT count(*) AS documents, count(content) AS searchable,
       count(CASE WHEN skipped IS NULL THEN pending END) AS pending,
       count(skipped) AS skipped, coalesce(sum(size), 0)::bigint AS size,
       coalesce(sum(chunks), 0)::bigint AS chunks
  FROM (SELECT document.content, document.pending, document.skipped, document.size, content.chunks
          FROM windrow.document AS document
          LEFT JOIN windrow.content AS content ON :with_chunks::boolean AND content.id = document.content
         WHERE document.tenant = :tenant::text AND document.collection = :collection::text
           AND document.source = :source::text
         ORDER BY document.uri, document.branch
         LIMIT :most::bigint) AS counted
