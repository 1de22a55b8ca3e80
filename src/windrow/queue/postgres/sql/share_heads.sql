-- As share_queues, for the best of very many queues: how many of the best jobs of all are in each of those
-- that are looked at. The parameters are those of share_queues, and :other_priority and :other_seq, before
-- which the queues that are not looked at have no job, or null. Jobs behind that place are not shared out.
-- Returns for queues that have such jobs queue, share, and next_priority and next_seq, before which nothing
-- is left there then; null if nothing is left, or may_have_more.
WITH found AS MATERIALIZED (
    SELECT lane.queue, job.priority, job.seq
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
),
ranked AS (
    SELECT queue, priority, seq,
           row_number() OVER (ORDER BY priority DESC, seq) <= :limit
           AND (:other_priority::integer IS NULL OR priority > :other_priority
                OR priority = :other_priority AND seq <= :other_seq::bigint) AS is_best
      FROM found
)
SELECT queue, count(*) FILTER (WHERE is_best) AS share,
       max(priority) FILTER (WHERE NOT is_best) AS next_priority,
       min(seq) FILTER (WHERE NOT is_best) AS next_seq,
       count(*) >= :limit AS may_have_more
  FROM ranked
 GROUP BY queue
