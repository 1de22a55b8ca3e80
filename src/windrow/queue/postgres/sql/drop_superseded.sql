-- Contents that documents let go of when these rows are put: what was pending and is no more, and
-- of one that has nothing to be searched any more, all. :rows, JSON; :now.
WITH had AS MATERIALIZED (
    SELECT had.pending, had.content, given.pending AS wanted
      FROM json_to_recordset(:rows::text::json) AS given(
           tenant text, collection text, source text, uri text, branch text, pending uuid)
      JOIN windrow.document AS had USING (tenant, collection, source, uri, branch)
)
UPDATE windrow.content SET dropped_at = coalesce(:now::timestamptz, statement_timestamp())
 WHERE id IN (SELECT pending FROM had WHERE pending IS DISTINCT FROM wanted
              UNION ALL
              SELECT content FROM had WHERE wanted IS NULL)
