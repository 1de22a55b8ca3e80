-- How much there is in each of some sources, counting the first :most of its documents by address at
-- the most (null: all of them). :tenants :collections :sources, a place of each for one source;
-- :with_chunks. Returns, in that order, documents, searchable, pending, skipped, size, chunks; without
-- :with_chunks these are 0 and no content is looked for: there is none whose id is null.
SELECT counted.*
  FROM unnest(:tenants::text[], :collections::text[], :sources::text[])
       WITH ORDINALITY AS place (tenant, collection, source, number)
 CROSS JOIN LATERAL (
       SELECT count(CASE WHEN skipped IS NULL OR coalesce(content, pending) IS NOT NULL THEN 1 END) AS documents,
              count(content) AS searchable,
              count(CASE WHEN skipped IS NULL THEN pending END) AS pending,
              count(skipped) AS skipped, coalesce(sum(size), 0)::bigint AS size,
              coalesce(sum(chunks), 0)::bigint AS chunks
         FROM (SELECT document.content, document.pending, document.skipped, document.size,
                      content.chunks
                 FROM windrow.document AS document
                 LEFT JOIN windrow.content AS content
                      ON content.id = CASE WHEN :with_chunks::boolean THEN document.content END
                WHERE document.tenant = place.tenant AND document.collection = place.collection
                  AND document.source = place.source
                ORDER BY document.uri, document.branch
                LIMIT :most::bigint) AS taken) AS counted
 ORDER BY place.number
