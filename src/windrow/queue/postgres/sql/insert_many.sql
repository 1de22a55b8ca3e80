-- Insert many new jobs that have no unique key and no group, as insert_jobs does, but in the order given.
-- Nothing is inserted if a queue among theirs is bounded; it fails if an id is taken. :ids, :payloads;
-- :now or null. The other fields of a JobRow come once, for all of them, or as an array with one for
-- each job, and the other of the two is null; that of tags and of limits is of the texts of arrays.
-- Returns one row for all: created_at; seqs in the order given; due_ats likewise, or with one for all.
-- What the jobs of one call share, as most fields, is sent and read once. One statement without a
-- transaction around it; COPY, into two tables and with counts and events after it, takes longer.
-- gate enqueue
WITH clock AS (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
     WHERE NOT EXISTS (
               SELECT FROM windrow.queue AS bounded
                WHERE bounded.max_depth IS NOT NULL
                  AND (bounded.name = :queue::text OR bounded.name = ANY (:queues::text[])))
),
given AS MATERIALIZED (
    SELECT given.*, nextval('windrow.job_seq') AS seq,
           coalesce(given.run_at, :run_at::timestamptz,
                    now + coalesce(given.delay, :delay::double precision) * interval '1 second')
               AS due_at
      FROM clock,
           unnest(:ids::uuid[], :payloads::json[], :queues, :kinds::text[], :headers_each::json[],
                  :tags_each::text[], :priorities::integer[], :run_ats::timestamptz[],
                  :delays::double precision[], :tenants::text[], :max_attempts_each::integer[],
                  :max_crashes_each::integer[], :leases::bigint[], :retentions::bigint[],
                  :limits_each::text[], :max_holds::bigint[], :are_cleaned::boolean[])
           AS given (id, payload, queue, kind, headers, tags, priority, run_at, delay, tenant,
                     max_attempts, max_crashes, lease_seconds, retention_seconds, limits,
                     max_hold_seconds, is_cleaned)
),
inserted AS (
    INSERT INTO windrow.job_live (
        id, seq, queue, kind, state, priority, run_at, created_at, max_attempts, max_crashes,
        lease_seconds, retention_seconds, tenant, is_cleaned, limit_keys, max_hold_seconds)
    SELECT id, seq, coalesce(queue, :queue), coalesce(kind, :kind::text),
           CASE WHEN due_at > (SELECT now FROM clock) THEN 'scheduled'
                WHEN coalesce(limits::text[], :limits::text[]) <> '{}' THEN 'held'
                ELSE 'ready' END,
           coalesce(priority, :priority::integer), due_at, (SELECT now FROM clock),
           coalesce(max_attempts, :max_attempts::integer),
           coalesce(max_crashes, :max_crashes::integer),
           coalesce(lease_seconds, :lease_seconds::bigint),
           coalesce(retention_seconds, :retention_seconds::bigint),
           coalesce(tenant, :tenant::text), coalesce(is_cleaned, :is_cleaned::boolean),
           nullif(coalesce(limits::text[], :limits), '{}'),
           coalesce(max_hold_seconds, :max_hold_seconds::bigint)
      FROM given
),
stored AS (
    INSERT INTO windrow.job_payload (id, payload, headers, tags)
    SELECT id, payload, coalesce(headers, :headers::json),
           nullif(coalesce(tags::text[], :tags::text[]), '{}')
      FROM given
),
shared AS MATERIALIZED (
    SELECT :run_ats IS NULL AND :delays IS NULL AS is_due_at_once,
           num_nonnulls(:queues, :kinds, :tenants, :run_ats, :delays, :limits_each) = 0 AS is_alike
),
alike AS MATERIALIZED (
    SELECT cardinality(:ids) AS n, :queue AS queue, :kind AS kind, :tenant AS tenant,
           CASE WHEN due_at > (SELECT now FROM clock) THEN 'scheduled'
                WHEN :limits <> '{}' THEN 'held'
                ELSE 'ready' END AS state,
           :ids AS job_ids
      FROM (SELECT due_at FROM given LIMIT 1) AS first
     WHERE (SELECT is_alike FROM shared)
     UNION ALL
    SELECT count(*), coalesce(queue, :queue), coalesce(kind, :kind), coalesce(tenant, :tenant),
           CASE WHEN due_at > (SELECT now FROM clock) THEN 'scheduled'
                WHEN coalesce(limits::text[], :limits) <> '{}' THEN 'held'
                ELSE 'ready' END,
           array_agg(id)
      FROM given
     WHERE NOT (SELECT is_alike FROM shared)
     GROUP BY 2, 3, 4, 5
),
tallied AS (
    INSERT INTO windrow.tally_told (n, queue, state)
    SELECT sum(n), queue, state FROM alike GROUP BY queue, state
),
recorded AS (
    INSERT INTO windrow.event (seq, at, leaf, type, state, queue, kind, tenant, job_ids)
    SELECT windrow.next_event(CASE WHEN state <> 'scheduled' THEN queue END), now,
           windrow.event_leaf(now), 'job.created', state, queue, kind, tenant, job_ids
      FROM alike, clock
)
SELECT now AS created_at, ARRAY(SELECT seq FROM given) AS seqs,
       CASE WHEN (SELECT is_due_at_once FROM shared) THEN ARRAY(SELECT due_at FROM given LIMIT 1)
            ELSE ARRAY(SELECT due_at FROM given) END AS due_ats
  FROM clock
