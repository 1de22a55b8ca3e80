-- What tenants may use in a period, in the place of what they might before.
-- :rows json array of [tenant, credits, per]
INSERT INTO windrow_quota (tenant, credits, per)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:rows) WHERE true
ON CONFLICT (tenant) DO UPDATE SET credits = excluded.credits, per = excluded.per
