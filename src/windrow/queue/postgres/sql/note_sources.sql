-- What came of the last look at sources; without an error they are as new. :rows, JSON; :now.
UPDATE windrow.source
   SET error = given.error,
       etag = CASE WHEN given.error IS NULL THEN given.etag ELSE source.etag END,
       last_modified = CASE WHEN given.error IS NULL THEN given.last_modified
                            ELSE source.last_modified END,
       refreshed_at = CASE WHEN given.error IS NULL
                           THEN coalesce(:now::timestamptz, statement_timestamp())
                           ELSE source.refreshed_at END
  FROM json_to_recordset(:rows::text::json) AS given(
       tenant text, id text, error text, etag text, last_modified text)
 WHERE source.tenant = given.tenant AND source.id = given.id
