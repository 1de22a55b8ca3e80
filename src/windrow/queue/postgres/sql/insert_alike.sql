-- Insert many new jobs that differ in their ids and payloads only, as insert_jobs does. Nothing is
-- inserted if their queue is bounded. :ids, :payloads; the other parameters are fields of a JobRow
-- that all of them share; :now or null. They have no unique key and no group, and their ids are new.
-- Returns one row for all: seqs in the order given, state, run_at, created_at.
-- What the jobs of one call share is sent, and looked at, once. One statement without a transaction
-- around it, which for the server is as much work as a COPY into each table; on SQLite, which has no
-- INSERT inside a query, it is the first of the statements of `alike.py`.
WITH clock AS (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
),
shared AS MATERIALIZED (
    SELECT CASE WHEN due_at > now THEN 'scheduled'
                WHEN :limits::text[] <> '{}' THEN 'held'
                ELSE 'ready' END AS state,
           due_at, now
      FROM (SELECT now, coalesce(:run_at::timestamptz,
                                 now + :delay::double precision * interval '1 second') AS due_at
              FROM clock) AS timed
     WHERE NOT EXISTS (
               SELECT FROM windrow.queue AS bounded
                WHERE bounded.max_depth IS NOT NULL AND bounded.name = :queue::text)
),
given AS MATERIALIZED (
    SELECT given.id, given.payload, nextval('windrow.job_seq') AS seq
      FROM shared, unnest(:ids::uuid[], :payloads::json[]) AS given (id, payload)
),
inserted AS (
    INSERT INTO windrow.job_live (
        id, seq, queue, kind, state, priority, run_at, created_at, max_attempts, max_crashes,
        lease_seconds, retention_seconds, tenant, is_cleaned, limit_keys, max_hold_seconds)
    SELECT given.id, given.seq, :queue, :kind::text, shared.state, :priority::integer,
           shared.due_at, shared.now, :max_attempts::integer, :max_crashes::integer,
           :lease_seconds::bigint, :retention_seconds::bigint, :tenant::text,
           :is_cleaned::boolean, nullif(:limits, '{}'), :max_hold_seconds::bigint
      FROM given, shared
),
stored AS (
    INSERT INTO windrow.job_payload (id, payload, headers, tags)
    SELECT id, payload, :headers::json, nullif(:tags::text[], '{}') FROM given
),
tallied AS (
    INSERT INTO windrow.tally_told (n, queue, state)
    SELECT cardinality(:ids), :queue, state FROM shared
),
recorded AS (
    INSERT INTO windrow.event (seq, at, leaf, type, state, queue, kind, tenant, job_ids)
    SELECT windrow.next_event(CASE WHEN state <> 'scheduled' THEN :queue END), now,
           windrow.event_leaf(now), 'job.created', state, :queue, :kind, :tenant, :ids
      FROM shared
)
SELECT ARRAY(SELECT seq FROM given) AS seqs, state, due_at AS run_at, now AS created_at
  FROM shared
