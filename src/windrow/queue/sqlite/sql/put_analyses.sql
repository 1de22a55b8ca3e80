-- What was made of calls; what was made of the same before stays. :rows, JSON.
UPDATE windrow_call
   SET analysis = value -> 'analysis', analysed_from = value ->> 'analysed_from'
  FROM json_each(:rows)
 WHERE windrow_call.id = value ->> 'id' AND analysed_from IS NOT value ->> 'analysed_from'
