-- Change sources, those that still exist.
-- takes sources (tenant tenant, id text, collection text, kind text, uri text, title text,
--   options json, tags json, refresh_seconds int)
-- gate tenant
UPDATE windrow.source AS source
   SET collection = sources.collection, kind = sources.kind, uri = sources.uri,
       title = sources.title, options = sources.options, tags = sources.tags,
       refresh_seconds = sources.refresh_seconds
  FROM {rows sources}
 WHERE source.tenant = sources.tenant AND source.id = sources.id
