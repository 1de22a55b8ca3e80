-- Texts. One that is there stays; if it had been dropped, the index may have lost it since.
-- :rows, JSON; :now.
INSERT INTO windrow.content AS kept (id, tenant, collection, chunks, created_at, text)
SELECT id, tenant, collection, 0, coalesce(:now::timestamptz, statement_timestamp()), text
  FROM json_to_recordset(:rows::text::json) AS given(
       id uuid, tenant text, collection text, text text)
 ORDER BY id
    ON CONFLICT (id) DO UPDATE SET space = NULL, dropped_at = NULL
 WHERE kept.dropped_at IS NOT NULL
