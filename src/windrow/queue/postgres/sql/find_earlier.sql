-- The ids that lie so many jobs back, of the live and of the finished ones.
-- :after, an id to begin before, or null; :count; :is_finished, which of them, or
-- null: both. Returns id: no more than that is in either table from the later of the two on, which
-- is null where neither has so many.
SELECT greatest(
         (SELECT id
            FROM windrow.job_live
           WHERE (:after::uuid IS NULL OR id < :after) AND :is_finished::boolean IS NOT TRUE
           ORDER BY id DESC
          OFFSET :count::integer
           LIMIT 1),
         (SELECT id
            FROM windrow.job_finished
           WHERE (:after::uuid IS NULL OR id < :after) AND :is_finished::boolean IS NOT FALSE
           ORDER BY id DESC
          OFFSET :count::integer
           LIMIT 1)) AS id
