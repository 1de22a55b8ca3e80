-- Create or change sources. What was noted of them stays.
-- takes sources (tenant tenant, id text, collection text, kind text, uri text, title text,
--   options json, tags json, refresh_seconds int)
-- gate tenant
INSERT INTO windrow.source
       (tenant, id, collection, kind, uri, title, options, tags, refresh_seconds, created_at)
SELECT tenant, id, collection, kind, uri, title, options, tags, refresh_seconds, {now}
  FROM {rows sources}
 WHERE true
ON CONFLICT (tenant, id) DO UPDATE SET
       collection = excluded.collection, kind = excluded.kind, uri = excluded.uri,
       title = excluded.title, options = excluded.options, tags = excluded.tags,
       refresh_seconds = excluded.refresh_seconds
