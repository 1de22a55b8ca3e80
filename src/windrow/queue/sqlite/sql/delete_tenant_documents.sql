-- The documents of a tenant. :tenant. Returns id.
DELETE FROM windrow_document WHERE tenant = :tenant RETURNING id
