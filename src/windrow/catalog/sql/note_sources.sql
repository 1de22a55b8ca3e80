-- Note the outcome of the last look at sources. With an error, what was known before stays.
-- takes sources (tenant tenant, id text, error text, etag text, last_modified text)
-- gate tenant
UPDATE windrow.source AS source
   SET error = sources.error,
       etag = CASE WHEN sources.error IS NULL THEN sources.etag ELSE source.etag END,
       last_modified = CASE WHEN sources.error IS NULL THEN sources.last_modified
                            ELSE source.last_modified END,
       refreshed_at = CASE WHEN sources.error IS NULL THEN {now} ELSE source.refreshed_at END
  FROM {rows sources}
 WHERE source.tenant = sources.tenant AND source.id = sources.id
