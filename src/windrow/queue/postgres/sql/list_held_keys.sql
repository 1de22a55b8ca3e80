-- The fairness keys that held jobs wait under, one index probe for each, in their order.
-- :after, the key to begin behind; :limit. Returns key.
WITH RECURSIVE found AS (
    (SELECT limit_keys[1] AS key
       FROM windrow.job_live
      WHERE state = 'held' AND NOT is_follower AND limit_keys[1] > :after::text
      ORDER BY limit_keys[1]
      LIMIT 1)
     UNION ALL
    SELECT (SELECT job.limit_keys[1]
              FROM windrow.job_live AS job
             WHERE job.state = 'held' AND NOT job.is_follower AND job.limit_keys[1] > found.key
             ORDER BY job.limit_keys[1]
             LIMIT 1)
      FROM found
     WHERE found.key IS NOT NULL
)
SELECT key FROM found WHERE key IS NOT NULL LIMIT :limit::integer
