-- The documents of a tenant. :tenant. Returns id.
DELETE FROM windrow.document WHERE tenant = :tenant::text RETURNING id
