-- What was found out about the recordings of calls. :rows, JSON.
UPDATE windrow.call
   SET seconds = given.seconds, note = given.note
  FROM json_to_recordset(:rows::text::json) AS given(id uuid, seconds double precision, note text)
 WHERE call.id = given.id
