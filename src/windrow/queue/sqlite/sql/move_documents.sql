-- Documents at other places. :rows, JSON with id, uri and title (null: as it was). Returns id, content.
UPDATE windrow_document
   SET uri = value ->> 'uri', title = coalesce(value ->> 'title', title)
  FROM json_each(:rows)
 WHERE windrow_document.id = value ->> 'id'
RETURNING windrow_document.id, content
