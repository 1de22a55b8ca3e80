-- What is kept of a call, oldest first. :call.
SELECT call, name, key, size, created_at FROM windrow_call_artifact
 WHERE call = :call ORDER BY created_at, name
