-- The first held jobs of each lane of fairness keys, best first: what find_held returns where some
-- lanes are closed. :keys; :wants, how many of each lane; :now or null.
-- Returns id, limit_keys, queue, kind, tenant, is_unserved. Lanes of paused queues and members of paused
-- groups are left out. One index probe steps from a lane to the next, however many jobs it has.
WITH RECURSIVE lane AS (
    SELECT given.key, given.want, first.queue, first.kind, first.tenant
      FROM unnest(:keys::text[], :wants::integer[]) AS given (key, want)
     CROSS JOIN LATERAL (
           SELECT job.queue, job.kind, coalesce(job.tenant, '') AS tenant
             FROM windrow.job_live AS job
            WHERE job.state = 'held' AND NOT job.is_follower AND job.limit_keys[1] = given.key
            ORDER BY job.limit_keys[1], job.queue, job.kind, coalesce(job.tenant, '')
            LIMIT 1) AS first
     UNION ALL
    SELECT lane.key, lane.want, next.queue, next.kind, next.tenant
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
SELECT job.id, job.limit_keys, lane.queue, lane.kind, nullif(lane.tenant, '') AS tenant,
       (lane.queue, lane.kind, lane.tenant) IN (
           SELECT queue, kind, tenant FROM windrow.unserved
            WHERE until > coalesce(:now::timestamptz, statement_timestamp())) AS is_unserved
  FROM lane
 CROSS JOIN LATERAL (
       SELECT job.id, job.limit_keys, job.priority, job.is_placed, job.seq
         FROM windrow.job_live AS job
        WHERE job.state = 'held' AND NOT job.is_follower AND job.limit_keys[1] = lane.key
          AND job.queue = lane.queue AND job.kind = lane.kind
          AND coalesce(job.tenant, '') = lane.tenant
          AND (job.group_id IS NULL OR job.group_id <> ALL (
                  ARRAY(SELECT id FROM windrow.job_group WHERE is_paused)))
        ORDER BY job.priority DESC, job.is_placed DESC, job.seq
        LIMIT lane.want) AS job
 WHERE lane.queue <> ALL (ARRAY(SELECT name FROM windrow.queue WHERE is_paused))
 ORDER BY job.priority DESC, job.is_placed DESC, job.seq
