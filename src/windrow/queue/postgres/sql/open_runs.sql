-- Groups whose members are paid for from now on; those that were opened before stay as they are.
-- :ids, :tenants, :periods, by place. Returns nothing.
INSERT INTO windrow.usage_run (id, tenant, period)
SELECT * FROM unnest(:ids::uuid[], :tenants::text[], :periods::timestamptz[])
                AS row (id, tenant, period)
 ORDER BY row.id
    ON CONFLICT DO NOTHING
