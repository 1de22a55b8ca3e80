-- Insert contents. An existing one stays; if it had been dropped, the index may have lost it
-- since. Contents for documents of a deleted source are left out, as the documents are.
-- takes contents (id uuid, tenant tenant, collection text, text text, source text)
-- gate tenant
INSERT INTO windrow.content AS kept (id, tenant, collection, chunks, created_at, text)
SELECT id, tenant, collection, 0, {now}, text
  FROM {rows contents}
 WHERE contents.source IS NULL
    OR EXISTS (SELECT 1 FROM windrow.source AS known
                WHERE known.tenant = contents.tenant AND known.id = contents.source)
 ORDER BY id
ON CONFLICT (id) DO UPDATE SET space = NULL, dropped_at = NULL
 WHERE kept.dropped_at IS NOT NULL
