-- A page of groups, newest first, as their rows have them: live members are not counted.
-- :after, the last id of the page before, or null; :state or null; :is_paused (true, or null: any);
-- :tenant or null; :limit.
SELECT job_group.*, NULL::jsonb AS live_counts
  FROM windrow.job_group
 WHERE (:after::uuid IS NULL OR id < :after)
   AND (:state::text IS NULL OR state = :state)
   AND (:is_paused::boolean IS NULL OR is_paused)
   AND (:tenant::text IS NULL OR tenant = :tenant)
 ORDER BY id DESC
 LIMIT :limit::integer
