-- The documents of a source at these addresses, of all branches.
-- takes tenant tenant, collection text, source text, uris text[]
-- gives document
SELECT {columns document}
  FROM windrow.document AS document
 WHERE tenant = :tenant AND collection = :collection AND source = :source AND uri {in uris}
 ORDER BY uri, branch
