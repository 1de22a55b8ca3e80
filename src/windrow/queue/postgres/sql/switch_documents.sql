-- What is pending, and now in the index, is searchable. :rows, JSON with id. Returns id.
UPDATE windrow.document SET content = pending, pending = NULL, skipped = NULL
 WHERE pending IN (SELECT id FROM json_to_recordset(:rows::text::json) AS given(id uuid))
RETURNING id
