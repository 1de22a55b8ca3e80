-- How many of the best jobs of several queues are in each, without locking anything.
-- :queues; :floor_priorities and :floor_seqs, the place in each where looking begins;
-- :kinds, :tenants or null; :limit; :now or null. Returns queue, share. A claim of several queues asks this first,
-- so that it locks only as many jobs as it wants. SQLite has one writer and claims straight away.
WITH best AS (
    SELECT lane.queue
      FROM unnest(:queues::text[], :floor_priorities::integer[], :floor_seqs::bigint[])
           AS lane (queue, priority, seq)
     CROSS JOIN LATERAL (
           (SELECT job.priority, job.seq
              FROM windrow.job_live AS job
             WHERE job.state = 'ready' AND job.queue = lane.queue AND job.priority > lane.priority
               AND (:kinds::text[] IS NULL OR job.kind = ANY (:kinds))
               AND (:tenants::text[] IS NULL OR job.tenant = ANY (:tenants))
               AND (job.group_id IS NULL OR job.group_id <> ALL (
                       ARRAY(SELECT id FROM windrow.job_group WHERE is_paused)))
               AND (job.limit_keys IS NULL OR NOT job.limit_keys && ARRAY(
                       SELECT key FROM windrow.job_limit
                        WHERE parked_until > coalesce(:now::timestamptz, statement_timestamp())))
             ORDER BY job.priority DESC, job.seq
             LIMIT :limit::integer)
            UNION ALL
           (SELECT job.priority, job.seq
              FROM windrow.job_live AS job
             WHERE job.state = 'ready' AND job.queue = lane.queue AND job.priority = lane.priority
               AND job.seq > lane.seq
               AND (:kinds::text[] IS NULL OR job.kind = ANY (:kinds))
               AND (:tenants::text[] IS NULL OR job.tenant = ANY (:tenants))
               AND (job.group_id IS NULL OR job.group_id <> ALL (
                       ARRAY(SELECT id FROM windrow.job_group WHERE is_paused)))
               AND (job.limit_keys IS NULL OR NOT job.limit_keys && ARRAY(
                       SELECT key FROM windrow.job_limit
                        WHERE parked_until > coalesce(:now::timestamptz, statement_timestamp())))
             ORDER BY job.priority DESC, job.seq
             LIMIT :limit::integer)
            UNION ALL
           (SELECT job.priority, job.seq
              FROM windrow.job_live AS job
             WHERE job.state = 'ready' AND job.queue = lane.queue AND job.priority < lane.priority
               AND (:kinds::text[] IS NULL OR job.kind = ANY (:kinds))
               AND (:tenants::text[] IS NULL OR job.tenant = ANY (:tenants))
               AND (job.group_id IS NULL OR job.group_id <> ALL (
                       ARRAY(SELECT id FROM windrow.job_group WHERE is_paused)))
               AND (job.limit_keys IS NULL OR NOT job.limit_keys && ARRAY(
                       SELECT key FROM windrow.job_limit
                        WHERE parked_until > coalesce(:now::timestamptz, statement_timestamp())))
             ORDER BY job.priority DESC, job.seq
             LIMIT :limit::integer)
           ) AS job
     WHERE lane.queue <> ALL (ARRAY(SELECT name FROM windrow.queue WHERE is_paused))
     ORDER BY job.priority DESC, job.seq
     LIMIT :limit::integer
)
SELECT queue, count(*) AS share FROM best GROUP BY queue
