-- Documents of a source at these places, of all branches. :tenant :collection :source :uris.
SELECT id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
       content, pending, size, skipped, dated_at, created_at, changed_at
  FROM windrow.document
 WHERE tenant = :tenant::text AND collection = :collection::text AND source = :source::text
   AND uri = ANY (:uris::text[])
 ORDER BY uri, branch
