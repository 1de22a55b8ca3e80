-- What was found out about the recordings of calls. :rows, JSON.
UPDATE windrow_call
   SET seconds = value ->> 'seconds', note = value ->> 'note'
  FROM json_each(:rows)
 WHERE windrow_call.id = value ->> 'id'
