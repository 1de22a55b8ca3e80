-- Credits that tenants have used. :rows json array of [tenant, period, credits]
INSERT INTO windrow_usage (tenant, period, credits)
SELECT value ->> 0, value ->> 1, sum(value ->> 2) FROM json_each(:rows) WHERE true
GROUP BY 1, 2
ON CONFLICT (tenant, period) DO UPDATE SET credits = credits + excluded.credits
