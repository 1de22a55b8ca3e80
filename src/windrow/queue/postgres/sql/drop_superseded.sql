-- Contents that documents let go of when these rows are put: what was pending and is no more, and
-- of one that has nothing to be searched any more, all. :rows, JSON; :now.
UPDATE windrow.content SET dropped_at = coalesce(:now::timestamptz, statement_timestamp())
  FROM json_to_recordset(:rows::text::json) AS given(
       tenant text, collection text, source text, uri text, branch text, pending uuid)
  JOIN windrow.document AS had USING (tenant, collection, source, uri, branch)
 WHERE (content.id = had.pending AND had.pending IS DISTINCT FROM given.pending)
    OR (content.id = had.content AND given.pending IS NULL)
