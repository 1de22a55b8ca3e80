-- Texts. One that is there stays; if it had been dropped, the index may have lost it since.
-- Those for documents of a source that is gone are left out, as these are. :rows, JSON; :now.
INSERT INTO windrow.content AS kept (id, tenant, collection, chunks, created_at, text)
SELECT id, tenant, collection, 0, coalesce(:now::timestamptz, statement_timestamp()), text
  FROM json_to_recordset(:rows::text::json) AS given(
       id uuid, tenant text, collection text, text text, source text)
 WHERE given.source IS NULL
    OR EXISTS (SELECT 1 FROM windrow.source AS known
                WHERE known.tenant = given.tenant AND known.id = given.source)
 ORDER BY id
    ON CONFLICT (id) DO UPDATE SET space = NULL, dropped_at = NULL
 WHERE kept.dropped_at IS NOT NULL
