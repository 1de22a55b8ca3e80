-- Documents that name one of these contents as what is searchable now. :ids; :tenant (null: of
-- whichever tenant).
SELECT id, tenant, collection, source, uri, branch, title, language, tags, content, dated_at
  FROM windrow_document
 WHERE content IN (SELECT value FROM json_each(:ids)) AND (:tenant IS NULL OR tenant = :tenant)
