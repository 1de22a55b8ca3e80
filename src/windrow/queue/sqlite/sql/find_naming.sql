-- Documents that name one of these contents, now or as pending. :ids.
SELECT id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
       content, pending, size, skipped, dated_at, created_at, changed_at
  FROM windrow_document
 WHERE content IN (SELECT value FROM json_each(:ids)) OR pending IN (SELECT value FROM json_each(:ids))
 ORDER BY id
