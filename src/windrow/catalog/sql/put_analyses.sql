-- Store the analyses of calls, unless they were made from the same input as the stored ones.
-- takes calls (id uuid, analysis json, analysed_from text)
UPDATE windrow.call AS call
   SET analysis = calls.analysis, analysed_from = calls.analysed_from
  FROM {rows calls}
 WHERE call.id = calls.id AND call.analysed_from {is_not} calls.analysed_from
