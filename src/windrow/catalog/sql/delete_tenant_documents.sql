-- Delete the documents of a tenant.
-- takes tenant tenant
-- gives id uuid
DELETE FROM windrow.document WHERE tenant = :tenant RETURNING id
