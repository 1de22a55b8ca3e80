-- The documents that are searchable by one of these contents, of one tenant or (null) of any. The
-- empty text that is added keeps Postgres from taking the index by tenant while it has no
-- statistics.
-- takes ids uuid[], tenant text
-- gives named_document
-- short
SELECT {columns named_document}
  FROM windrow.document AS named_document
 WHERE content {in ids} AND (:tenant IS NULL OR tenant || '' = :tenant)
