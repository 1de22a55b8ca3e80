-- Groups whose members are paid for from now on; those that were opened before stay as they are.
-- :rows json array of [id, tenant, period]
INSERT INTO windrow_usage_run (id, tenant, period)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:rows) WHERE true
ON CONFLICT DO NOTHING
