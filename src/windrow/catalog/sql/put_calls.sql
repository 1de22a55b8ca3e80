-- Insert calls; an existing one stays as it is.
-- takes calls (id uuid, tenant tenant, collection text, name text, status text)
INSERT INTO windrow.call (id, tenant, collection, name, status, created_at)
SELECT id, tenant, collection, name, status, {now}
  FROM {rows calls}
 WHERE true
 ORDER BY id
ON CONFLICT DO NOTHING
