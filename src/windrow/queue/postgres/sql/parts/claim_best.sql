-- Make the best ready jobs of some queues active: part of claim_jobs, which says what its parameters
-- are. Gives taken, each job as it is returned; started, their numbers and ids by what they share.
-- The floor skips the index entries of jobs that were claimed before and not vacuumed yet: jobs of
-- a higher priority are always looked for, only those of the floor's own priority begin behind it.
-- The three looks are one Append, which stops at the share: of a queue without a floor, whose place is
-- before all, the first look finds everything. So no statement of its own is needed for one queue.
-- Jobs are fetched by `= ANY (ARRAY(…))` and LATERAL … OFFSET 0 because the planner, which cannot
-- know the limit, would otherwise join whole tables.
picked AS MATERIALIZED (
    SELECT job.id, job.seconds
      FROM (SELECT lane.*,
                   ARRAY(SELECT id FROM windrow.job_group WHERE is_paused) AS paused_groups,
                   ARRAY(SELECT key FROM windrow.job_limit
                          WHERE parked_until > coalesce(:now::timestamptz, statement_timestamp()))
                   AS parked_keys
              FROM unnest(:queues::text[], :shares::integer[], :floor_priorities::integer[],
                          :floor_seqs::bigint[]) AS lane (queue, share, priority, seq)
             WHERE lane.queue <> ALL (ARRAY(SELECT name FROM windrow.queue WHERE is_paused))
            OFFSET 0) AS lane
     CROSS JOIN LATERAL (
            SELECT * FROM (
                SELECT job.id, coalesce(job.lease_seconds,
                                        (:kind_seconds::jsonb ->> job.kind)::bigint,
                                        :seconds::bigint) AS seconds
                  FROM windrow.job_live AS job
                 WHERE job.state = 'ready' AND job.queue = lane.queue
                   AND job.priority > lane.priority
                   AND (:kinds::text[] IS NULL OR job.kind = ANY (:kinds))
                   AND (:tenants::text[] IS NULL OR job.tenant = ANY (:tenants))
                   AND (job.group_id IS NULL OR job.group_id <> ALL (lane.paused_groups))
                   AND (job.limit_keys IS NULL OR NOT job.limit_keys && lane.parked_keys)
                 ORDER BY job.priority DESC, job.seq
                 LIMIT lane.share
                   FOR UPDATE SKIP LOCKED) AS higher
             UNION ALL
            SELECT * FROM (
                SELECT job.id, coalesce(job.lease_seconds,
                                        (:kind_seconds::jsonb ->> job.kind)::bigint,
                                        :seconds::bigint) AS seconds
                  FROM windrow.job_live AS job
                 WHERE job.state = 'ready' AND job.queue = lane.queue
                   AND job.priority = lane.priority AND job.seq > lane.seq
                   AND (:kinds::text[] IS NULL OR job.kind = ANY (:kinds))
                   AND (:tenants::text[] IS NULL OR job.tenant = ANY (:tenants))
                   AND (job.group_id IS NULL OR job.group_id <> ALL (lane.paused_groups))
                   AND (job.limit_keys IS NULL OR NOT job.limit_keys && lane.parked_keys)
                 ORDER BY job.priority DESC, job.seq
                 LIMIT lane.share
                   FOR UPDATE SKIP LOCKED) AS same
             UNION ALL
            SELECT * FROM (
                SELECT job.id, coalesce(job.lease_seconds,
                                        (:kind_seconds::jsonb ->> job.kind)::bigint,
                                        :seconds::bigint) AS seconds
                  FROM windrow.job_live AS job
                 WHERE job.state = 'ready' AND job.queue = lane.queue
                   AND job.priority < lane.priority
                   AND (:kinds::text[] IS NULL OR job.kind = ANY (:kinds))
                   AND (:tenants::text[] IS NULL OR job.tenant = ANY (:tenants))
                   AND (job.group_id IS NULL OR job.group_id <> ALL (lane.paused_groups))
                   AND (job.limit_keys IS NULL OR NOT job.limit_keys && lane.parked_keys)
                 ORDER BY job.priority DESC, job.seq
                 LIMIT lane.share
                   FOR UPDATE SKIP LOCKED) AS lower
             LIMIT lane.share) AS job
),
length AS MATERIALIZED (
    SELECT seconds, array_agg(id) AS job_ids,
           CASE WHEN row_number() OVER () = 1 THEN :token::uuid ELSE gen_random_uuid() END AS token
      FROM picked
     GROUP BY seconds
),
leased AS (
    INSERT INTO windrow.lease (token, claimed_at, expires_at, seconds, worker, job_ids)
    SELECT token, coalesce(:now::timestamptz, statement_timestamp()),
           coalesce(:now::timestamptz, statement_timestamp()) + seconds * interval '1 second',
           seconds, :worker::text, job_ids
      FROM length
),
taken AS (
    UPDATE windrow.job_live AS job
       SET state = 'active',
           lease = CASE WHEN (SELECT count(*) FROM length) = 1
                        THEN :token
                        ELSE (SELECT token FROM length
                               WHERE length.seconds
                                     = coalesce(job.lease_seconds,
                                                (:kind_seconds::jsonb ->> job.kind)::bigint,
                                                :seconds::bigint)) END,
           runs = job.runs + 1,
           started_at = coalesce(:now::timestamptz, statement_timestamp())
     WHERE job.id = ANY (ARRAY(SELECT id FROM picked))
    RETURNING job.id, job.seq, job.queue, job.kind, job.priority, job.attempts, job.crashes,
              job.runs, job.max_attempts, job.max_crashes, job.created_at,
              nullif(job.run_at, job.created_at) AS run_at,
              (SELECT (date_part('epoch', coalesce(:now::timestamptz, statement_timestamp()))
                       * 1e6)::bigint) AS started_at,
              job.tenant, job.group_id, job.root_of, job.unique_key, job.error,
              job.lease_seconds, job.retention_seconds, job.is_cleaned,
              nullif(job.lease, :token) AS lease, job.limit_keys, job.max_hold_seconds
),
started AS MATERIALIZED (
    SELECT queue, kind, tenant, group_id, count(*) AS n, array_agg(id) AS job_ids
      FROM taken
     GROUP BY queue, kind, tenant, group_id
)
