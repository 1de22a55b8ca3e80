-- All keys that the first held jobs of a fairness key carry.
-- :key :look
-- Returns key.
SELECT DISTINCT k.value AS key
FROM (
  SELECT limit_keys FROM windrow_job_live INDEXED BY windrow_job_live_held
  WHERE fair_key = :key AND state = 'held' AND is_follower = 0
  ORDER BY priority DESC, is_placed DESC, place
  LIMIT :look
) AS j
CROSS JOIN json_each(j.limit_keys) AS k
