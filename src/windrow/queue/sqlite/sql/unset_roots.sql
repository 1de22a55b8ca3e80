-- Roots that are kept longer forget a group that is removed, and may have another one.
-- {table} windrow_job_live or windrow_job_finished, :ids json array of groups
UPDATE {table} SET root_of = NULL
WHERE id IN (
  SELECT g.root FROM windrow_job_group AS g WHERE g.id IN (SELECT value FROM json_each(:ids))
)
  AND root_of IN (SELECT value FROM json_each(:ids))
