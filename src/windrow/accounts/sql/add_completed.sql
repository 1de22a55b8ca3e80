-- Add to the usage what runs, which have just been closed, have completed.
-- takes ids uuid[]
INSERT INTO windrow.usage AS total (tenant, period, credits)
SELECT run.tenant, run.period, sum(job_group.completed)
  FROM windrow.usage_run AS run
  JOIN windrow.job_group AS job_group ON job_group.id = run.id
 WHERE run.id {in ids}
 GROUP BY run.tenant, run.period
 ORDER BY run.tenant, run.period
ON CONFLICT (tenant, period) DO UPDATE SET credits = total.credits + excluded.credits
