-- The artifacts of a call, the oldest first.
-- takes call uuid
-- gives call uuid, name text, key text, size int, created_at time
SELECT call, name, key, size, created_at FROM windrow.call_artifact
 WHERE call = :call
 ORDER BY created_at, name
