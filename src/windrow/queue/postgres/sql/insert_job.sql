-- Insert one new job outside groups, as insert_jobs does. Nothing is inserted if its id or its unique
-- key is taken, or its queue is bounded. The parameters are the fields of a JobRow, :tags and :limits
-- null if there are none; :now or null.
-- Returns seq, state, run_at, created_at.
-- Only Postgres has it: most jobs come one by one, and what insert_jobs needs for many (records out of
-- JSON, a sort, a join, aggregates) takes longer than the insert itself.
-- gate enqueue
WITH inserted AS (
    INSERT INTO windrow.job_live (
        id, seq, queue, kind, state, priority, run_at, created_at, max_attempts, max_crashes,
        lease_seconds, retention_seconds, tenant, unique_key, is_cleaned, limit_keys,
        max_hold_seconds)
    SELECT :id::uuid, nextval('windrow.job_seq'), :queue::text, :kind::text,
           CASE WHEN coalesce(:run_at::timestamptz, now + :delay::double precision
                                                        * interval '1 second') > now
                THEN 'scheduled'
                WHEN :limits::text[] <> '{}' THEN 'held'
                ELSE 'ready' END,
           :priority::integer,
           coalesce(:run_at::timestamptz, now + :delay::double precision * interval '1 second'),
           now, :max_attempts::integer, :max_crashes::integer, :lease_seconds::bigint,
           :retention_seconds::bigint, :tenant::text, :unique::text, :is_cleaned::boolean,
           nullif(:limits::text[], '{}'), :max_hold_seconds::bigint
      FROM (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now) AS clock
     WHERE NOT EXISTS (
               SELECT FROM windrow.queue AS bounded
                WHERE bounded.max_depth IS NOT NULL AND bounded.name = :queue)
        ON CONFLICT DO NOTHING
    RETURNING id, seq, queue, kind, tenant, state, run_at, created_at
),
stored AS (
    INSERT INTO windrow.job_payload (id, payload, headers, tags)
    SELECT id, :payload::json, :headers::json, nullif(:tags::text[], '{}') FROM inserted
),
tallied AS (
    INSERT INTO windrow.tally_told (n, queue, state)
    SELECT 1, queue, state FROM inserted
),
recorded AS (
    INSERT INTO windrow.event (seq, at, leaf, type, state, queue, kind, tenant, job_ids)
    SELECT windrow.next_event(CASE WHEN state <> 'scheduled' THEN queue END), created_at,
           windrow.event_leaf(created_at), 'job.created', state, queue, kind, tenant, ARRAY[id]
      FROM inserted
)
SELECT seq, state, run_at, created_at FROM inserted
