-- Make the best ready jobs of one queue active, from its beginning: claim_jobs for a queue of which no
-- floor is known, as an idle worker claims. One look instead of three, because what starting the
-- larger statement takes is most of what the claim of one job takes (the server's CPU: a sixth less).
-- :queue and how many of it at most (:limit); the other parameters, and what it returns, are those of
-- claim_jobs.
WITH picked AS MATERIALIZED (
    SELECT job.id, coalesce(job.lease_seconds, (:kind_seconds::jsonb ->> job.kind)::bigint,
                            :seconds::bigint) AS seconds
      FROM windrow.job_live AS job
     WHERE job.state = 'ready' AND job.queue = :queue::text
       AND :queue <> ALL (ARRAY(SELECT name FROM windrow.queue WHERE is_paused))
       AND (:kinds::text[] IS NULL OR job.kind = ANY (:kinds))
       AND (:tenants::text[] IS NULL OR job.tenant = ANY (:tenants))
       AND (job.group_id IS NULL OR job.group_id <> ALL (
               ARRAY(SELECT id FROM windrow.job_group WHERE is_paused)))
       AND (job.limit_keys IS NULL OR NOT job.limit_keys && ARRAY(
               SELECT key FROM windrow.job_limit
                WHERE parked_until > coalesce(:now::timestamptz, statement_timestamp())))
     ORDER BY job.priority DESC, job.seq
     LIMIT :limit::integer
       FOR UPDATE SKIP LOCKED
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
                        THEN (SELECT token FROM length LIMIT 1)
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
    SELECT change.step * counted.n, :queue, change.state
      FROM (SELECT sum(n)::bigint AS n FROM started) AS counted,
           (VALUES (-1, 'ready'), (1, 'active')) AS change (step, state)
     WHERE counted.n > 0
),
recorded AS (
    INSERT INTO windrow.event (at, leaf, type, state, queue, kind, tenant, group_id, job_ids)
    SELECT coalesce(:now::timestamptz, statement_timestamp()),
           windrow.event_leaf(coalesce(:now::timestamptz, statement_timestamp())),
           'job.started', 'active', queue, kind, tenant, group_id, job_ids
      FROM started
)
SELECT taken.*, stored.payload, stored.headers, stored.tags
  FROM taken
 CROSS JOIN LATERAL (
       SELECT payload, headers, tags
         FROM windrow.job_payload AS stored
        WHERE stored.id = taken.id
       OFFSET 0) AS stored
