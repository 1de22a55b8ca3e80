-- Delete the quotas of tenants.
-- takes tenants text[]
-- gives tenant text
DELETE FROM windrow.quota WHERE tenant {in tenants} RETURNING tenant
