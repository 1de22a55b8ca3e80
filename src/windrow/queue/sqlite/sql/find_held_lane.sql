-- The first held jobs of one lane of a fairness key, best first. Members of paused groups are left
-- out.
-- :key :queue :kind :tenant ('' for none) :limit
-- Returns seq, id, queue, limit_keys, priority, is_placed, place.
SELECT seq, id, queue, limit_keys, priority, is_placed, place
FROM windrow_job_live INDEXED BY windrow_job_live_held_lane
WHERE fair_key = :key AND queue = :queue AND kind = :kind AND ifnull(tenant, '') = :tenant
  AND state = 'held' AND is_follower = 0
  AND (group_id IS NULL OR group_id NOT IN (SELECT id FROM windrow_job_group WHERE is_paused = 1))
ORDER BY priority DESC, is_placed DESC, place
LIMIT :limit
