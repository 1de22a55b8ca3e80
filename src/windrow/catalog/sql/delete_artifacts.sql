-- Forget artifacts of a call.
-- takes call uuid, names text[]
DELETE FROM windrow.call_artifact WHERE call = :call AND name {in names}
