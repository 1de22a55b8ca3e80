-- Insert runs, whose completed members cost credits from now on; an existing one stays as it is.
-- takes runs (id uuid, tenant text, period time)
INSERT INTO windrow.usage_run (id, tenant, period)
SELECT id, tenant, period FROM {rows runs} WHERE true ORDER BY id
ON CONFLICT DO NOTHING
