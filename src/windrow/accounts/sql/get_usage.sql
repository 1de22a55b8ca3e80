-- What a tenant has used in a period, with what its open runs have completed so far.
-- takes tenant text, period time
-- gives credits int
SELECT CAST(
         coalesce((SELECT credits FROM windrow.usage
                    WHERE tenant = :tenant AND period = :period), 0)
         + coalesce((SELECT sum(job_group.completed)
                       FROM windrow.usage_run AS run
                       JOIN windrow.job_group AS job_group ON job_group.id = run.id
                      WHERE run.tenant = :tenant AND run.period = :period AND run.is_open), 0)
       AS bigint) AS credits
