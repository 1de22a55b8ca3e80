-- Documents as they are now. What they are to be searched by is pending until the index has it; one
-- with nothing pending has nothing to be searched by. Why the index has refused what is pending stays
-- said. Those of a source that is gone are left out: nobody could remove them any more.
-- :rows, JSON; :now.
INSERT INTO windrow_document
       (id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
        pending, size, skipped, dated_at, created_at, changed_at)
SELECT value ->> 'id', value ->> 'tenant', value ->> 'collection', value ->> 'source',
       value ->> 'uri', value ->> 'branch', value ->> 'title', value ->> 'language',
       value -> 'tags', value -> 'metadata', value ->> 'content_hash', value ->> 'pending',
       value ->> 'size', value ->> 'skipped', value ->> 'dated_at', :now, :now
  FROM json_each(:rows)
 WHERE EXISTS (SELECT 1 FROM windrow_source AS source
                WHERE source.tenant = value ->> 'tenant' AND source.id = value ->> 'source')
ON CONFLICT (tenant, collection, source, uri, branch) DO UPDATE SET
  title = excluded.title, language = excluded.language, tags = excluded.tags,
  metadata = excluded.metadata, size = excluded.size,
  skipped = iif(excluded.pending = pending, coalesce(excluded.skipped, skipped), excluded.skipped),
  dated_at = excluded.dated_at, content_hash = excluded.content_hash,
  pending = nullif(excluded.pending, content),
  content = iif(excluded.pending IS NULL, NULL, content),
  changed_at = iif(excluded.content_hash = content_hash, changed_at, excluded.changed_at)
