-- How many calls are in each stage, ended ones aside. :tenant (null: of all tenants).
-- Returns status, n.
SELECT status, count(*) AS n
  FROM windrow_call INDEXED BY windrow_call_under_way
 WHERE status NOT IN ('done', 'failed') AND (:tenant IS NULL OR tenant = :tenant)
 GROUP BY status
