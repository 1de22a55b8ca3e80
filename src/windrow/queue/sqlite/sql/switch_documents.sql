-- What is pending, and now in the index, is searchable. :rows, JSON with id. Returns id.
UPDATE windrow_document SET content = pending, pending = NULL, skipped = NULL
 WHERE pending IN (SELECT value ->> 'id' FROM json_each(:rows))
RETURNING id
