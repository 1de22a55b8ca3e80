-- Documents as they are now. What they are to be searched by is pending until the index has it; one
-- with nothing pending has nothing to be searched by. Why the index has refused what is pending stays
-- said. Those of a source that is gone are left out: nobody could remove them any more.
-- :rows, JSON; :now.
INSERT INTO windrow.document AS had
       (id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
        pending, size, skipped, dated_at, created_at, changed_at)
SELECT id, tenant, collection, source, uri, branch, title, language, tags, metadata, content_hash,
       pending, size, skipped, timestamptz 'epoch' + dated_at * interval '1 microsecond',
       coalesce(:now::timestamptz, statement_timestamp()),
       coalesce(:now::timestamptz, statement_timestamp())
  FROM json_to_recordset(:rows::text::json) AS given(
       id uuid, tenant text, collection text, source text, uri text, branch text, title text,
       language text, tags json, metadata json, content_hash text, pending uuid, size bigint,
       skipped text, dated_at bigint)
 WHERE EXISTS (SELECT 1 FROM windrow.source AS known
                WHERE known.tenant = given.tenant AND known.id = given.source)
 ORDER BY tenant, collection, source, uri, branch
    ON CONFLICT (tenant, collection, source, uri, branch) DO UPDATE SET
  title = excluded.title, language = excluded.language, tags = excluded.tags,
  metadata = excluded.metadata, size = excluded.size,
  skipped = CASE WHEN excluded.pending = had.pending THEN coalesce(excluded.skipped, had.skipped)
                 ELSE excluded.skipped END,
  dated_at = excluded.dated_at, content_hash = excluded.content_hash,
  pending = nullif(excluded.pending, had.content),
  content = CASE WHEN excluded.pending IS NULL THEN NULL ELSE had.content END,
  changed_at = CASE WHEN excluded.content_hash = had.content_hash THEN had.changed_at
                    ELSE excluded.changed_at END
