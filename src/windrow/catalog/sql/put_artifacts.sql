-- Record the artifacts of calls; an existing one stays.
-- takes artifacts (call uuid, name text, key text, size int)
INSERT INTO windrow.call_artifact (call, name, key, size, created_at)
SELECT call, name, key, size, {now}
  FROM {rows artifacts}
 WHERE true
 ORDER BY call, name
ON CONFLICT DO NOTHING
