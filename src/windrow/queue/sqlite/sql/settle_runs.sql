-- What runs that have ended have completed becomes usage; `close_runs` follows in the same
-- transaction. :ids json array
INSERT INTO windrow_usage (tenant, period, credits)
SELECT windrow_usage_run.tenant, windrow_usage_run.period, sum(windrow_job_group.completed)
FROM windrow_usage_run
JOIN windrow_job_group ON windrow_job_group.id = windrow_usage_run.id
WHERE windrow_usage_run.id IN (SELECT value FROM json_each(:ids)) AND windrow_usage_run.is_open
GROUP BY 1, 2
ON CONFLICT (tenant, period) DO UPDATE SET credits = credits + excluded.credits
