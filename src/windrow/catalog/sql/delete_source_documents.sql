-- Delete the documents of a source.
-- takes tenant tenant, collection text, source text
-- gate tenant
DELETE FROM windrow.document
 WHERE tenant = :tenant AND collection = :collection AND source = :source
