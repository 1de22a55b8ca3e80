-- Forget keys. :keys, locked, with nothing set and no job in use. Returns key. Those that jobs are
-- held under stay, since they have turns to keep. If one comes meanwhile, its promotion adds the key.
DELETE FROM windrow.job_limit AS job_limit
 WHERE job_limit.key = ANY (:keys::text[])
   AND (SELECT job.id
          FROM windrow.job_live AS job
         WHERE job.state = 'held'
           AND NOT job.is_follower
           AND job.limit_keys[1] = job_limit.key
         LIMIT 1) IS NULL
RETURNING key
