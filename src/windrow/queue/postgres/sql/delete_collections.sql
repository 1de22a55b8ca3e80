-- The collections of a tenant. :tenant.
DELETE FROM windrow.collection WHERE tenant = :tenant::text
