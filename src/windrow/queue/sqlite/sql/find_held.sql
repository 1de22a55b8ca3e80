-- The first held jobs of a fairness key, best first.
-- :key :limit
-- Returns seq, id, queue, limit_keys.
SELECT seq, id, queue, limit_keys
FROM windrow_job_live INDEXED BY windrow_job_live_held
WHERE fair_key = :key AND state = 'held' AND is_follower = 0
ORDER BY priority DESC, is_placed DESC, place
LIMIT :limit
