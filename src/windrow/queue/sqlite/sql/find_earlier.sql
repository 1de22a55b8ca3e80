-- The ids that lie so many jobs back, of the live and of the finished ones.
-- :after, an id to begin before, or null; :count; :is_finished, which of them, or null: both
-- Returns id, once for each table that has so many.
SELECT id FROM (
  SELECT id FROM windrow_job_live
  WHERE (:after IS NULL OR id < :after) AND :is_finished IS NOT 1
  ORDER BY id DESC LIMIT 1 OFFSET :count
)
UNION ALL
SELECT id FROM (
  SELECT id FROM windrow_job_finished
  WHERE (:after IS NULL OR id < :after) AND :is_finished IS NOT 0
  ORDER BY id DESC LIMIT 1 OFFSET :count
)
