-- What documents let go of when what is pending becomes searchable. :rows, JSON with id; :now.
UPDATE windrow.content SET dropped_at = coalesce(:now::timestamptz, statement_timestamp())
 WHERE id IN (SELECT content FROM windrow.document
               WHERE pending IN (SELECT id FROM json_to_recordset(:rows::text::json)
                                     AS given(id uuid))
                 AND content <> pending)
