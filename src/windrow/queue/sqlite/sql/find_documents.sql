-- Documents of a source at these places, of all branches. :tenant :collection :source :uris.
SELECT id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
       content, pending, size, skipped, dated_at, created_at, changed_at
  FROM windrow_document
 WHERE tenant = :tenant AND collection = :collection AND source = :source
   AND uri IN (SELECT value FROM json_each(:uris))
 ORDER BY uri, branch
