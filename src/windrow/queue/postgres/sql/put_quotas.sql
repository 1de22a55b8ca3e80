-- What tenants may use in a period, in the place of what they might before.
-- :tenants, :credits, :pers, by place. Returns nothing.
INSERT INTO windrow.quota (tenant, credits, per)
SELECT * FROM unnest(:tenants::text[], :credits::bigint[], :pers::text[]) AS row (tenant, credits, per)
 ORDER BY row.tenant
    ON CONFLICT (tenant) DO UPDATE SET credits = excluded.credits, per = excluded.per
