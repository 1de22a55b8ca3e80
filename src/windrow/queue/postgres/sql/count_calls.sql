-- How many calls are in each stage, ended ones aside. :tenant (null: of all tenants).
-- Returns status, n.
SELECT status, count(*) AS n
  FROM windrow.call
 WHERE status NOT IN ('done', 'failed') AND (:tenant::text IS NULL OR tenant = :tenant)
 GROUP BY status
