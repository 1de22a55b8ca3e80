-- What a tenant has used in a period, with what its open runs have completed so far.
-- :tenant, :period. Returns credits.
SELECT (coalesce((SELECT usage.credits FROM windrow.usage
                   WHERE tenant = :tenant::text AND period = :period::timestamptz), 0)
        + coalesce((SELECT sum(job_group.completed)
                      FROM windrow.usage_run
                      JOIN windrow.job_group ON job_group.id = usage_run.id
                     WHERE usage_run.tenant = :tenant::text
                       AND usage_run.period = :period::timestamptz
                       AND usage_run.is_open), 0))::bigint AS credits
