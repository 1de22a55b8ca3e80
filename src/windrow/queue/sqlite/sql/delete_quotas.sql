-- Let tenants use what they like. :tenants json array
DELETE FROM windrow_quota WHERE tenant IN (SELECT value FROM json_each(:tenants))
