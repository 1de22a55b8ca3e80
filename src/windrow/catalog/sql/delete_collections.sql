-- Delete the collections of a tenant.
-- takes tenant tenant
DELETE FROM windrow.collection WHERE tenant = :tenant
