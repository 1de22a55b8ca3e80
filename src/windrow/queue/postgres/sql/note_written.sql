-- Where texts were written to, and in how many chunks. :rows, JSON with id, chunks, space.
UPDATE windrow.content SET chunks = given.chunks, space = given.space
  FROM json_to_recordset(:rows::text::json) AS given(id uuid, chunks integer, space text)
 WHERE content.id = given.id
