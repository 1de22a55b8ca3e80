-- Texts. One that is there stays; if it had been dropped, the index may have lost it since.
-- Those for documents of a source that is gone are left out, as these are. :rows, JSON; :now.
INSERT INTO windrow_content (id, tenant, collection, chunks, created_at, text)
SELECT value ->> 'id', value ->> 'tenant', value ->> 'collection', 0, :now, value ->> 'text'
  FROM json_each(:rows)
 WHERE value ->> 'source' IS NULL
    OR EXISTS (SELECT 1 FROM windrow_source AS source
                WHERE source.tenant = value ->> 'tenant' AND source.id = value ->> 'source')
ON CONFLICT (id) DO UPDATE SET space = NULL, dropped_at = NULL
  WHERE dropped_at IS NOT NULL
