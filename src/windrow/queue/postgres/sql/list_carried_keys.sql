-- All keys that the first held jobs of fairness keys carry: the ones a promotion has to lock.
-- :keys, fairness keys; :look, how many jobs of each are looked at. Returns key.
SELECT DISTINCT carried.key
  FROM unnest(:keys::text[]) AS lane (key)
 CROSS JOIN LATERAL (
       SELECT job.limit_keys
         FROM windrow.job_live AS job
        WHERE job.state = 'held' AND NOT job.is_follower AND job.limit_keys[1] = lane.key
        ORDER BY job.priority DESC, job.seq
        LIMIT :look::integer) AS job
 CROSS JOIN LATERAL unnest(job.limit_keys) AS carried (key)
