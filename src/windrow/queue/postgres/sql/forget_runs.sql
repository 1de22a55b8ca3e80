-- Runs of earlier periods that nobody looks at any more: closed, or without a group.
-- :tenants, :periods, by place. Returns nothing.
DELETE FROM windrow.usage_run
 WHERE id = ANY (ARRAY(
       SELECT usage_run.id
         FROM unnest(:tenants::text[], :periods::timestamptz[]) AS row (tenant, period)
         JOIN windrow.usage_run
           ON usage_run.tenant = row.tenant AND usage_run.period < row.period
        WHERE NOT usage_run.is_open
              OR NOT EXISTS (SELECT FROM windrow.job_group WHERE job_group.id = usage_run.id)
          FOR UPDATE OF usage_run SKIP LOCKED))
