-- Calls that are new; one that is there stays as it is. :rows, JSON; :now.
INSERT INTO windrow_call (id, tenant, collection, name, status, created_at)
SELECT value ->> 'id', value ->> 'tenant', value ->> 'collection', value ->> 'name', value ->> 'status', :now
  FROM json_each(:rows)
 WHERE true
ON CONFLICT DO NOTHING
