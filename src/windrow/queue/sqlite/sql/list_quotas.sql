-- What tenants may use in a period, by tenant.
SELECT tenant, credits, per FROM windrow_quota ORDER BY tenant
