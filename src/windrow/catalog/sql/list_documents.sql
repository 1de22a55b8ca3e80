-- A page of the documents of a collection by source, uri and branch; a null source stands for
-- any. With only_noted: those that were skipped, or from which secrets were removed.
-- takes tenant tenant, collection text, source text, after_source text, after_uri text,
--   after_branch text, only_noted bool, limit int
-- gives document
SELECT {columns document}
  FROM windrow.document AS document
 WHERE tenant = :tenant AND collection = :collection AND (:source IS NULL OR source = :source)
   AND (source, uri, branch) > (:after_source, :after_uri, :after_branch)
   AND (NOT :only_noted OR skipped IS NOT NULL OR metadata ->> 'redacted' IS NOT NULL)
 ORDER BY source, uri, branch
 LIMIT :limit
