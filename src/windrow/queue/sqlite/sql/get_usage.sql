-- What a tenant has used in a period, with what its open runs have completed so far.
-- :tenant :period
SELECT
  coalesce(
    (SELECT credits FROM windrow_usage WHERE tenant = :tenant AND period = :period), 0
  ) + coalesce(
    (
      SELECT sum(windrow_job_group.completed)
      FROM windrow_usage_run
      JOIN windrow_job_group ON windrow_job_group.id = windrow_usage_run.id
      WHERE windrow_usage_run.tenant = :tenant AND windrow_usage_run.period = :period
        AND windrow_usage_run.is_open
    ), 0
  ) AS credits
