-- Insert new jobs that collide with no live one; the others are left out. No finished job is looked at.
-- :rows JSON array of JobRow; :followers JSON array of the ids of those that are to be held followers
-- of their unique keys; :now or null. The depth of bounded queues is looked after by who runs it. Jobs
-- with limits are held, without a look at these: a limit is never locked by an insert. :are_drafted
-- 'true' if the transaction is a caller's, whose events are numbered when it commits.
-- Returns id, seq, queue, group_id, state, run_at, created_at of those inserted.
-- Every parameter is text, so that each driver a caller may bring binds it alike. `seq` is taken in
-- the order given; rows are inserted in the order of their keys, so that two batches with the same
-- keys wait for each other and never deadlock. A JSON null comes out of the record as SQL's NULL.
-- gate enqueue
WITH given AS MATERIALIZED (
    SELECT row.*,
           row.id IN (SELECT value::uuid FROM json_array_elements_text(:followers::text::json))
               AS is_follower,
           nextval('windrow.job_seq') AS seq,
           clock.now,
           coalesce(row.run_at, clock.now + coalesce(row.delay, 0) * interval '1 second') AS due_at
      FROM (SELECT coalesce(:now::text::timestamptz, statement_timestamp()) AS now) AS clock,
           json_to_recordset(:rows::text::json) AS row (
               id uuid, queue text, kind text, payload json, headers json, tags text[],
               priority integer, run_at timestamptz, delay double precision, "unique" text,
               tenant text, "group" uuid, max_attempts integer, max_crashes integer,
               lease_seconds bigint, retention_seconds bigint, limits text[],
               max_hold_seconds bigint, is_cleaned boolean)
),
inserted AS (
    INSERT INTO windrow.job_live (
        id, seq, queue, kind, state, priority, run_at, created_at, max_attempts, max_crashes,
        lease_seconds, retention_seconds, tenant, group_id, unique_key, is_cleaned, is_follower,
        limit_keys, max_hold_seconds)
    SELECT id, seq, queue, kind,
           CASE WHEN is_follower THEN 'held'
                WHEN due_at > now THEN 'scheduled'
                WHEN limits <> '{}' THEN 'held'
                ELSE 'ready' END,
           priority, due_at, now, max_attempts, max_crashes, lease_seconds,
           retention_seconds, tenant, "group", "unique", is_cleaned,
           is_follower, nullif(limits, '{}'), max_hold_seconds
      FROM given
     ORDER BY "unique", tenant, is_follower, seq
        ON CONFLICT DO NOTHING
    RETURNING id, seq, queue, kind, tenant, group_id, state, run_at, created_at
),
stored AS (
    INSERT INTO windrow.job_payload (id, payload, headers, tags)
    SELECT given.id, coalesce(payload, 'null'), headers, nullif(tags, '{}')
      FROM given JOIN inserted ON inserted.id = given.id AND inserted.seq = given.seq
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT count(*), queue, state FROM inserted GROUP BY queue, state
),
recorded AS (
    INSERT INTO windrow.event (at, leaf, type, state, queue, kind, tenant, group_id, job_ids)
    SELECT created_at, windrow.event_leaf(created_at), 'job.created', state, queue, kind, tenant,
           group_id, array_agg(id)
      FROM inserted
     WHERE NOT :are_drafted::text::boolean
     GROUP BY created_at, state, queue, kind, tenant, group_id
),
drafted AS (
    INSERT INTO windrow.event_draft (at, type, state, queue, kind, tenant, group_id, job_ids)
    SELECT created_at, 'job.created', state, queue, kind, tenant, group_id, array_agg(id)
      FROM inserted
     WHERE :are_drafted::text::boolean
     GROUP BY created_at, state, queue, kind, tenant, group_id
)
SELECT id, seq, queue, group_id, state, run_at, created_at FROM inserted
