-- The collections of a tenant. :tenant.
DELETE FROM windrow_collection WHERE tenant = :tenant
