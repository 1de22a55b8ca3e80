-- What tenants may use in a period, by tenant.
SELECT tenant, credits, per FROM windrow.quota ORDER BY tenant COLLATE "C"
