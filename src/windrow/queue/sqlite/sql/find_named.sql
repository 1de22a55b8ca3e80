-- Documents that name one of these contents as what is searchable now. :ids; :tenant (null: of
-- whichever tenant).
SELECT id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
       content, pending, size, skipped, dated_at, created_at, changed_at
  FROM windrow_document
 WHERE content IN (SELECT value FROM json_each(:ids)) AND (:tenant IS NULL OR tenant = :tenant)
