-- complete_jobs and claim_jobs in one statement: one round trip and one commit for both, which is a
-- third faster than two. Parameters of both files, and :ends, how many runs there are to end. Returns
-- the claimed jobs as claim_jobs does, and last a row that has no id but done_ids, the runs that were
-- ended, if that were not all of them, and ready_queues.
-- Only Postgres has it: SQLite runs the two in one transaction at the same price.
WITH gone AS (
    DELETE FROM windrow.job_live AS job
     USING unnest(:ids::text::uuid[], :holders::integer[], :results::json[],
                  :are_cleaned::boolean[])
           AS given (id, holder, result, is_cleaned)
     WHERE job.id = given.id
       AND job.lease = (SELECT :tokens::text::uuid[])[coalesce(given.holder, 1)]
       AND job.state = 'active'
       AND job.group_id IS NULL
       AND job.root_of IS NULL
    RETURNING job.*, given.result AS new_result, coalesce(given.is_cleaned, false) AS new_is_cleaned
),
finished AS MATERIALIZED (
    SELECT queue, kind, tenant, count(*) AS n, array_agg(id) AS job_ids
      FROM gone
     GROUP BY queue, kind, tenant
),
moved AS (
    INSERT INTO windrow.job_finished (
        id, seq, queue, kind, state, priority, run_at, created_at, started_at, finished_at,
        expires_at, attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds,
        retention_seconds, tenant, unique_key, limit_keys, max_hold_seconds, is_cleaned, result,
        leaf, number)
    SELECT id, seq, queue, kind, 'completed', priority, run_at, created_at, started_at,
           coalesce(:now::timestamptz, statement_timestamp()),
           CASE WHEN seconds = -1 THEN 'infinity'
                ELSE coalesce(:now::timestamptz, statement_timestamp())
                     + seconds * interval '1 second' END,
           attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds,
           retention_seconds, tenant, unique_key, limit_keys, max_hold_seconds,
           is_cleaned OR new_is_cleaned, new_result,
           CASE WHEN seconds BETWEEN 0 AND 86400
                THEN 1 + (floor((date_part('epoch', coalesce(:now::timestamptz,
                                                             statement_timestamp()))
                                 + seconds) / 3600)::bigint + 1) % 28
                ELSE 0 END,
           number
      FROM (SELECT gone.*,
                   coalesce(gone.retention_seconds,
                            -- Mostly all are of one queue: one look instead of one for each.
                            CASE WHEN (SELECT min(queue) = max(queue) FROM finished)
                                 THEN (SELECT queue.completed_seconds
                                         FROM windrow.queue
                                        WHERE queue.name = (SELECT min(queue) FROM finished))
                                 ELSE (SELECT queue.completed_seconds
                                         FROM windrow.queue WHERE queue.name = gone.queue) END,
                            86400) AS seconds
              FROM gone
            OFFSET 0) AS gone
),
promoted AS (
    UPDATE windrow.job_live AS job
       SET is_follower = false,
           state = CASE WHEN job.state <> 'held' THEN job.state
                        WHEN job.run_at > coalesce(:now::timestamptz, statement_timestamp())
                        THEN 'scheduled'
                        WHEN job.limit_keys IS NOT NULL THEN 'held'
                        ELSE 'ready' END,
           run_at = CASE WHEN job.limit_keys IS NULL THEN job.run_at
                         ELSE greatest(job.run_at,
                                       coalesce(:now::timestamptz, statement_timestamp())) END
     WHERE job.id = ANY (ARRAY(
               SELECT follower.id
                 FROM gone
                CROSS JOIN LATERAL (
                      SELECT live.id
                        FROM windrow.job_live AS live
                       WHERE live.is_follower
                         AND live.unique_key = gone.unique_key
                         AND live.tenant IS NOT DISTINCT FROM gone.tenant
                      OFFSET 0) AS follower
                WHERE gone.unique_key IS NOT NULL))
    RETURNING job.queue, job.state
),
ended AS (
    DELETE FROM windrow.lease
     USING (SELECT lease AS token, count(*) AS n FROM gone GROUP BY lease ORDER BY lease) AS done
     WHERE lease.token = done.token
       AND (CASE WHEN done.n = cardinality(lease.job_ids) THEN true
                 -- Mostly the last of them ends last: one look instead of one for each.
                 WHEN EXISTS (
                      SELECT FROM windrow.job_live AS job
                       WHERE job.id = lease.job_ids[cardinality(lease.job_ids)]
                         AND job.lease = lease.token
                         AND job.state = 'active'
                         AND job.id <> ALL (ARRAY(SELECT id FROM gone))) THEN false
                 -- As they were before: if none but those that end now were left, it is over.
                 ELSE done.n = (
                      SELECT count(*) FROM windrow.job_live AS job
                       WHERE job.id = ANY (lease.job_ids)
                         AND job.lease = lease.token
                         AND job.state = 'active')
            END)
),
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
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -sum(n)::bigint, queue, 'ready' FROM started GROUP BY queue
     UNION ALL
    SELECT sum(n)::bigint, queue, 'active' FROM started GROUP BY queue
     UNION ALL
    SELECT -sum(n)::bigint, queue, 'active' FROM finished GROUP BY queue
     UNION ALL
    SELECT sum(n)::bigint, queue, 'completed' FROM finished GROUP BY queue
     UNION ALL
    SELECT -count(*), queue, 'held' FROM promoted WHERE state <> 'paused' GROUP BY queue
     UNION ALL
    SELECT count(*), queue, state FROM promoted WHERE state <> 'paused' GROUP BY queue, state
),
recorded AS (
    INSERT INTO windrow.event (at, leaf, type, state, queue, kind, tenant, group_id, job_ids)
    SELECT coalesce(:now::timestamptz, statement_timestamp()),
           windrow.event_leaf(coalesce(:now::timestamptz, statement_timestamp())),
           'job.finished', 'completed', queue, kind, tenant, NULL::uuid, job_ids
      FROM finished
     UNION ALL
    SELECT coalesce(:now::timestamptz, statement_timestamp()),
           windrow.event_leaf(coalesce(:now::timestamptz, statement_timestamp())),
           'job.started', 'active', queue, kind, tenant, group_id, job_ids
      FROM started
)
SELECT taken.*, stored.payload, stored.headers, stored.tags,
       NULL::uuid[] AS done_ids, NULL::text[] AS ready_queues
  FROM taken
 CROSS JOIN LATERAL (
       SELECT payload, headers, tags
         FROM windrow.job_payload AS stored
        WHERE stored.id = taken.id
       OFFSET 0) AS stored
 UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       CASE WHEN (SELECT sum(n) FROM finished) IS DISTINCT FROM :ends::integer
            THEN ARRAY(SELECT id FROM gone) END,
       ARRAY(SELECT queue FROM promoted)
