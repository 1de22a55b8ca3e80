-- Forget keys with nothing set and no job in use. Those that jobs are held under stay, since they
-- have turns to keep.
-- :keys json array
DELETE FROM windrow_job_limit
WHERE key IN (SELECT value FROM json_each(:keys))
  AND NOT EXISTS (
    SELECT 1 FROM windrow_job_live AS j INDEXED BY windrow_job_live_held
    WHERE j.fair_key = windrow_job_limit.key AND j.state = 'held' AND j.is_follower = 0
  )
