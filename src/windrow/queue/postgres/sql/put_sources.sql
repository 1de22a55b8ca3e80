-- Sources as they are said to be; what was noted of them stays. :rows, JSON; :now.
INSERT INTO windrow.source
       (tenant, id, collection, kind, uri, title, options, tags, refresh_seconds, created_at)
SELECT tenant, id, collection, kind, uri, title, options, tags, refresh_seconds,
       coalesce(:now::timestamptz, statement_timestamp())
  FROM json_to_recordset(:rows::text::json) AS given(
       tenant text, id text, collection text, kind text, uri text, title text, options json,
       tags json, refresh_seconds bigint)
    ON CONFLICT (tenant, id) DO UPDATE SET
       collection = excluded.collection, kind = excluded.kind, uri = excluded.uri,
       title = excluded.title, options = excluded.options, tags = excluded.tags,
       refresh_seconds = excluded.refresh_seconds
