-- How much there is in one of some sources, counting the first :most of its documents by address at the most
-- (null: all of them; -1 is what SQLite calls that). :tenant :collection :source :with_chunks. Returns documents,
-- searchable, pending, skipped, size, chunks; without :with_chunks these are 0 and no content is read.
SELECT count(CASE WHEN skipped IS NULL OR coalesce(content, pending) IS NOT NULL THEN 1 END) AS documents,
       count(content) AS searchable,
       count(CASE WHEN skipped IS NULL THEN pending END) AS pending,
       count(skipped) AS skipped, coalesce(sum(size), 0) AS size,
       coalesce(sum(chunks), 0) AS chunks
  FROM (SELECT document.content, document.pending, document.skipped, document.size, content.chunks
          FROM windrow_document AS document
          LEFT JOIN windrow_content AS content ON :with_chunks AND content.id = document.content
         WHERE document.tenant = :tenant AND document.collection = :collection
           AND document.source = :source
         ORDER BY document.uri, document.branch
         LIMIT coalesce(:most, -1)) AS counted
