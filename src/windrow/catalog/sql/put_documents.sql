-- Insert documents, or change those at the same places. What a document is to be searched by is
-- pending until the index has it; a document with nothing pending has nothing to be searched by.
-- The reason why the index refused what is pending stays. Documents of a deleted source are left
-- out: nobody could delete them any more.
-- takes documents (id uuid, tenant tenant, collection text, source text, uri text, branch text,
--   title text, language text, tags json, metadata json, content_hash text, pending uuid,
--   size int, skipped text, dated_at time)
-- gate tenant
INSERT INTO windrow.document AS had
       (id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
        pending, size, skipped, dated_at, created_at, changed_at)
SELECT id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
       pending, size, skipped, dated_at, {now}, {now}
  FROM {rows documents}
 WHERE EXISTS (SELECT 1 FROM windrow.source AS known
                WHERE known.tenant = documents.tenant AND known.id = documents.source)
 ORDER BY tenant, collection, source, uri, branch
ON CONFLICT (tenant, collection, source, uri, branch) DO UPDATE SET
  title = excluded.title, language = excluded.language, tags = excluded.tags,
  metadata = excluded.metadata, size = excluded.size,
  skipped = CASE WHEN excluded.pending = had.pending THEN coalesce(excluded.skipped, had.skipped)
                 ELSE excluded.skipped END,
  dated_at = excluded.dated_at, content_hash = excluded.content_hash,
  pending = nullif(excluded.pending, had.content),
  content = CASE WHEN excluded.pending IS NULL THEN NULL ELSE had.content END,
  changed_at = CASE WHEN excluded.content_hash = had.content_hash THEN had.changed_at
                    ELSE excluded.changed_at END
