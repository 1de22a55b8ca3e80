-- Runs of earlier periods that nobody looks at any more: closed, or without a group.
-- :rows json array of [id, tenant, period]
DELETE FROM windrow_usage_run
WHERE id IN (
  SELECT usage_run.id
  FROM json_each(:rows) AS given
  JOIN windrow_usage_run AS usage_run
    ON usage_run.tenant = given.value ->> 1 AND usage_run.period < given.value ->> 2
  WHERE NOT usage_run.is_open
    OR NOT EXISTS (SELECT 1 FROM windrow_job_group WHERE windrow_job_group.id = usage_run.id)
)
