-- Sources as they are said to be now, those of them that are there still. :rows, JSON.
UPDATE windrow.source
   SET collection = given.collection, kind = given.kind, uri = given.uri, title = given.title,
       options = given.options, tags = given.tags, refresh_seconds = given.refresh_seconds
  FROM json_to_recordset(:rows::text::json) AS given(
       tenant text, id text, collection text, kind text, uri text, title text, options json,
       tags json, refresh_seconds bigint)
 WHERE source.tenant = given.tenant AND source.id = given.id
