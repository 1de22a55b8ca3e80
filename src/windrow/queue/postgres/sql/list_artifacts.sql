-- What is kept of a call, oldest first. :call.
SELECT call, name, key, size, created_at FROM windrow.call_artifact
 WHERE call = :call::uuid ORDER BY created_at, name
