-- Lock the sources that documents are about to be put into: none is deleted before the end of the
-- transaction, or the documents see that it is. Comes before any other lock. SQLite has one
-- writer.
-- only postgres
-- takes documents (tenant tenant, source text)
-- gate tenant
SELECT source.id
  FROM windrow.source AS source
  JOIN (SELECT DISTINCT tenant, source FROM {rows documents}) AS given
    ON source.tenant = given.tenant AND source.id = given.source
 ORDER BY source.tenant, source.id
 {share source}
