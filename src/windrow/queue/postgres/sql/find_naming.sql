-- Documents that name one of these contents, now or as pending. :ids.
SELECT id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
       content, pending, size, skipped, dated_at, created_at, changed_at
  FROM windrow.document
 WHERE id IN (SELECT id FROM windrow.document WHERE content = ANY (:ids::uuid[])
              UNION ALL
              SELECT id FROM windrow.document WHERE pending = ANY (:ids::uuid[]))
 ORDER BY id
