-- Add credits to the usage of tenants.
-- takes usage (tenant text, period time, credits int)
INSERT INTO windrow.usage AS total (tenant, period, credits)
SELECT tenant, period, sum(credits)
  FROM {rows usage}
 WHERE true
 GROUP BY tenant, period
 ORDER BY tenant, period
ON CONFLICT (tenant, period) DO UPDATE SET credits = total.credits + excluded.credits
