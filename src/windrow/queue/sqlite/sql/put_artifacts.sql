-- Parts of calls that are kept; one that is there stays. :rows, JSON; :now.
INSERT INTO windrow_call_artifact (call, name, key, size, created_at)
SELECT value ->> 'call', value ->> 'name', value ->> 'key', value ->> 'size', :now
  FROM json_each(:rows)
 WHERE true
ON CONFLICT DO NOTHING
