-- Where texts were written to, and in how many chunks. :rows, JSON with id, chunks, space.
UPDATE windrow_content SET chunks = value ->> 'chunks', space = value ->> 'space'
  FROM json_each(:rows)
 WHERE windrow_content.id = value ->> 'id'
