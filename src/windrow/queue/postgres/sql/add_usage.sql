-- Credits that tenants have used. :tenants, :periods, :credits, by place. Returns nothing.
INSERT INTO windrow.usage AS usage (tenant, period, credits)
SELECT row.tenant, row.period, sum(row.credits)
  FROM unnest(:tenants::text[], :periods::timestamptz[], :credits::bigint[])
       AS row (tenant, period, credits)
 GROUP BY row.tenant, row.period
 ORDER BY row.tenant, row.period
    ON CONFLICT (tenant, period) DO UPDATE SET credits = usage.credits + excluded.credits
