-- Documents by their ids. :ids.
SELECT id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
       content, pending, size, skipped, dated_at, created_at, changed_at
  FROM windrow_document
 WHERE id IN (SELECT value FROM json_each(:ids))
