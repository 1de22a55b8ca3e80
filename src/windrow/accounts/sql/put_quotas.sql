-- Set the quotas of tenants.
-- takes quotas (tenant text, credits int, per text)
INSERT INTO windrow.quota (tenant, credits, per)
SELECT tenant, credits, per FROM {rows quotas} WHERE true ORDER BY tenant
ON CONFLICT (tenant) DO UPDATE SET credits = excluded.credits, per = excluded.per
