-- The number of calls in each stage, without those that have ended.
-- takes tenant text
-- gives status text, n int
SELECT status, count(*) AS n
  FROM windrow.call {by call_under_way}
 WHERE status NOT IN ('done', 'failed') AND (:tenant IS NULL OR tenant = :tenant)
 GROUP BY status
