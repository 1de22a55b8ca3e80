-- All keys that the first held jobs of fairness keys carry: the ones a promotion has to lock. Where some
-- lanes are closed, those of each lane too: behind the many jobs of one the others would not be seen.
-- :keys, fairness keys; :look, how many jobs of each are looked at; :now or null. Returns key.
WITH RECURSIVE lane AS (
    SELECT given.key, first.queue, first.kind, first.tenant
      FROM unnest(:keys::text[]) AS given (key)
     CROSS JOIN LATERAL (
           SELECT job.queue, job.kind, coalesce(job.tenant, '') AS tenant
             FROM windrow.job_live AS job
            WHERE job.state = 'held' AND NOT job.is_follower AND job.limit_keys[1] = given.key
            ORDER BY job.limit_keys[1], job.queue, job.kind, coalesce(job.tenant, '')
            LIMIT 1) AS first
     WHERE EXISTS (SELECT FROM windrow.unserved
                    WHERE until > coalesce(:now::timestamptz, statement_timestamp()))
        OR EXISTS (SELECT FROM windrow.queue WHERE is_paused)
     UNION ALL
    SELECT lane.key, next.queue, next.kind, next.tenant
      FROM lane
     CROSS JOIN LATERAL (
           SELECT job.queue, job.kind, coalesce(job.tenant, '') AS tenant
             FROM windrow.job_live AS job
            WHERE job.state = 'held' AND NOT job.is_follower AND job.limit_keys[1] = lane.key
              AND (job.queue, job.kind, coalesce(job.tenant, ''))
                  > (lane.queue, lane.kind, lane.tenant)
            ORDER BY job.limit_keys[1], job.queue, job.kind, coalesce(job.tenant, '')
            LIMIT 1) AS next
)
SELECT carried.key
  FROM unnest(:keys::text[]) AS given (key)
 CROSS JOIN LATERAL (
       SELECT job.limit_keys
         FROM windrow.job_live AS job
        WHERE job.state = 'held' AND NOT job.is_follower AND job.limit_keys[1] = given.key
        ORDER BY job.priority DESC, job.is_placed DESC, job.seq
        LIMIT :look::integer) AS job
 CROSS JOIN LATERAL unnest(job.limit_keys) AS carried (key)
 UNION
SELECT carried.key
  FROM lane
 CROSS JOIN LATERAL (
       SELECT job.limit_keys
         FROM windrow.job_live AS job
        WHERE job.state = 'held' AND NOT job.is_follower AND job.limit_keys[1] = lane.key
          AND job.queue = lane.queue AND job.kind = lane.kind
          AND coalesce(job.tenant, '') = lane.tenant
        ORDER BY job.priority DESC, job.is_placed DESC, job.seq
        LIMIT :look::integer) AS job
 CROSS JOIN LATERAL unnest(job.limit_keys) AS carried (key)
