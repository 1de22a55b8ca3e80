-- What runs that have ended have completed becomes usage, once: of two who do it the second waits for
-- the first, and finds nothing open. :ids. Returns nothing.
WITH closed AS (
    UPDATE windrow.usage_run
       SET is_open = false
     WHERE id = ANY (:ids::uuid[]) AND is_open
    RETURNING id, tenant, period
)
INSERT INTO windrow.usage AS usage (tenant, period, credits)
SELECT closed.tenant, closed.period, sum(job_group.completed)
  FROM closed JOIN windrow.job_group ON job_group.id = closed.id
 GROUP BY closed.tenant, closed.period
 ORDER BY closed.tenant, closed.period
    ON CONFLICT (tenant, period) DO UPDATE SET credits = usage.credits + excluded.credits
