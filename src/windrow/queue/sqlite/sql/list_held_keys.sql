-- The fairness keys that held jobs wait under, found by stepping through their index.
-- :after, the key to begin behind; :limit
-- Returns key.
WITH RECURSIVE found (key) AS (
  SELECT min(fair_key) FROM windrow_job_live
  WHERE state = 'held' AND is_follower = 0 AND fair_key > :after
  UNION ALL
  SELECT (
    SELECT min(j.fair_key) FROM windrow_job_live AS j
    WHERE j.state = 'held' AND j.is_follower = 0 AND j.fair_key > found.key
  )
  FROM found
  WHERE found.key IS NOT NULL
)
SELECT key FROM found WHERE key IS NOT NULL LIMIT :limit
