-- What was made of calls; what was made of the same before stays. :rows, JSON.
UPDATE windrow.call
   SET analysis = given.analysis, analysed_from = given.analysed_from
  FROM json_to_recordset(:rows::text::json) AS given(id uuid, analysis json, analysed_from text)
 WHERE call.id = given.id AND call.analysed_from IS DISTINCT FROM given.analysed_from
