-- Documents that name one of these contents as what is searchable now. :ids; :tenant (null: of
-- whichever tenant). The empty text that is added keeps the index by tenant from being taken for better than
-- that of contents while there are no statistics.
SELECT id, tenant, collection, source, uri, branch, title, language, tags, content, dated_at
  FROM windrow.document
 WHERE content = ANY (:ids::uuid[]) AND (:tenant::text IS NULL OR tenant || '' = :tenant)
