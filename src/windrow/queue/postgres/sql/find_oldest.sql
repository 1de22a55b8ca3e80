-- The unclaimed jobs of a queue that are given up first: lowest priority, then oldest; locked.
-- :queue; :limit. Returns id. Reads the whole queue, which is bounded.
-- gate tenant
SELECT id
  FROM windrow.job_live
 WHERE queue = :queue::text AND state IN ('scheduled', 'held', 'paused', 'ready')
 ORDER BY priority, seq
 LIMIT :limit::integer
   FOR UPDATE SKIP LOCKED
