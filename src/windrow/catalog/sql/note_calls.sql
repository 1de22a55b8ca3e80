-- Record what was found out about the recordings of calls.
-- takes calls (id uuid, seconds real, note text)
UPDATE windrow.call AS call SET seconds = calls.seconds, note = calls.note
  FROM {rows calls}
 WHERE call.id = calls.id
