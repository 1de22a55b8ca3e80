-- Let tenants use what they like. :tenants. Returns the tenants that had a quota.
DELETE FROM windrow.quota WHERE tenant = ANY (:tenants::text[]) RETURNING tenant
