-- Calls that are new; one that is there stays as it is. :rows, JSON; :now.
INSERT INTO windrow.call (id, tenant, collection, name, status, created_at)
SELECT id, tenant, collection, name, status, coalesce(:now::timestamptz, statement_timestamp())
  FROM json_to_recordset(:rows::text::json) AS given(
       id uuid, tenant text, collection text, name text, status text)
 ORDER BY id
    ON CONFLICT DO NOTHING
