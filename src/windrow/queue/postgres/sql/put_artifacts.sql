-- Parts of calls that are kept; one that is there stays. :rows, JSON; :now.
INSERT INTO windrow.call_artifact (call, name, key, size, created_at)
SELECT call, name, key, size, coalesce(:now::timestamptz, statement_timestamp())
  FROM json_to_recordset(:rows::text::json) AS given(call uuid, name text, key text, size bigint)
 ORDER BY call, name
    ON CONFLICT DO NOTHING
