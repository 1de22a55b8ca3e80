-- The first held jobs of fairness keys, best first. :keys; :wants, how many of each.
-- Returns id, limit_keys.
SELECT job.id, job.limit_keys
  FROM unnest(:keys::text[], :wants::integer[]) WITH ORDINALITY AS lane (key, want, place)
 CROSS JOIN LATERAL (
       SELECT job.id, job.limit_keys
         FROM windrow.job_live AS job
        WHERE job.state = 'held' AND NOT job.is_follower AND job.limit_keys[1] = lane.key
        ORDER BY job.priority DESC, job.is_placed DESC, job.seq
        LIMIT lane.want) AS job
