-- Sources as they are said to be; what was noted of them stays. :rows, JSON; :now.
INSERT INTO windrow_source
       (tenant, id, collection, kind, uri, title, options, tags, refresh_seconds, created_at)
SELECT value ->> 'tenant', value ->> 'id', value ->> 'collection', value ->> 'kind',
       value ->> 'uri', value ->> 'title', value -> 'options', value -> 'tags',
       value ->> 'refresh_seconds', :now
  FROM json_each(:rows)
 WHERE true
ON CONFLICT (tenant, id) DO UPDATE SET
  collection = excluded.collection, kind = excluded.kind, uri = excluded.uri,
  title = excluded.title, options = excluded.options, tags = excluded.tags,
  refresh_seconds = excluded.refresh_seconds
