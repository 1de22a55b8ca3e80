-- Documents at other places. :rows, JSON with id, uri and title (null: as it was). Returns id, content.
UPDATE windrow.document
   SET uri = given.uri, title = coalesce(given.title, document.title)
  FROM json_to_recordset(:rows::text::json) AS given(id uuid, uri text, title text)
 WHERE document.id = given.id
RETURNING document.id, document.content
