-- What the functions of PGMQ are made of. Names with an underscore are not for callers. All of them act
-- on sets of messages by a few statements; jobs that belong to a group, have a unique key or were asked
-- to stop go one by one through the functions of windrow_dialect, because more follows from their moves.
-- Times are those of clock_timestamp(): a poll lasts longer than its statement's first moment.

CREATE OR REPLACE FUNCTION pgmq._require_queue(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pgmq.meta WHERE queue_name = name) THEN
        RAISE undefined_table USING MESSAGE = format('relation "pgmq.q_%s" does not exist', name),
            HINT = 'Create the queue first, by pgmq.create().';
    END IF;
END
$$;

-- The token of a lease says which queue it is for and when it runs out, in an order: what has run out of
-- a queue is a range of the leases' primary key, and needs no index that every renewal would write.
CREATE OR REPLACE FUNCTION pgmq._token(name text, expires_at timestamptz, tail bytea) RETURNS uuid
LANGUAGE sql STABLE AS $$
    SELECT encode(substring(sha256(convert_to(name, 'UTF8')) FOR 4)
                  || substring(int8send(floor(date_part('epoch', expires_at) * 1000)::bigint) FROM 3)
                  || tail, 'hex')::uuid
$$;

-- New messages, visible from `delay` on. Returns their numbers in the order given. Tenants may write no
-- table, and send through the relation of the queue.
CREATE OR REPLACE FUNCTION pgmq._send_batch(
    queue_name text, msgs jsonb[], headers jsonb[], delay timestamptz)
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    IF windrow.session_access() = 'all' THEN
        RETURN QUERY SELECT * FROM pgmq._insert_messages(queue_name, msgs, headers, delay);
    ELSE
        RETURN QUERY EXECUTE format(
            'INSERT INTO pgmq.%I (vt, message, headers) SELECT $1, msg, header '
            'FROM unnest($2, $3) AS one (msg, header) RETURNING msg_id', 'q_' || queue_name)
            USING coalesce(delay, clock_timestamp()), msgs, headers;
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION pgmq._insert_messages(
    queue_name text, msgs jsonb[], headers jsonb[], delay timestamptz)
RETURNS SETOF bigint LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    name CONSTANT text := queue_name;
    at CONSTANT timestamptz := clock_timestamp();
    vt CONSTANT timestamptz := coalesce(delay, at);
    after CONSTANT text := CASE WHEN vt > at THEN 'scheduled' ELSE 'ready' END;
    sender CONSTANT text := windrow.session_tenant();
    counter CONSTANT regclass := pgmq._counter(name);
    most integer;
    is_bounded boolean;
    ids uuid[];
    numbers bigint[];
BEGIN
    SELECT coalesce(max_reads, 2147483647),
           EXISTS (SELECT FROM windrow.queue WHERE queue.name = meta.queue_name
                                               AND max_depth IS NOT NULL)
      INTO most, is_bounded
      FROM pgmq.meta WHERE queue_name = name;
    IF NOT FOUND THEN
        PERFORM pgmq._require_queue(name);
    END IF;
    IF EXISTS (SELECT FROM unnest($3) AS one WHERE jsonb_typeof(one) NOT IN ('object', 'null')) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'the headers of a message must be an object';
    END IF;
    WITH given AS MATERIALIZED (
        SELECT windrow_dialect.new_id() AS id, nextval('windrow.job_seq') AS seq,
               nextval(counter) AS number, msg, nullif(header, 'null') AS header
          FROM unnest($2, $3) AS one (msg, header)
    ),
    inserted AS (
        INSERT INTO windrow.job_live (
            id, seq, queue, kind, state, priority, run_at, created_at, max_attempts, max_crashes,
            tenant, number)
        SELECT id, seq, name, 'pgmq', after, 5, vt, at, most, most, sender, number FROM given
    ),
    stored AS (
        INSERT INTO windrow.job_payload (id, payload, headers)
        SELECT id, coalesce(msg::json, 'null'), header::json FROM given
    )
    SELECT array_agg(id), array_agg(number) INTO ids, numbers FROM given;
    INSERT INTO windrow.tally (n, queue, state) VALUES (cardinality(ids), name, after);
    INSERT INTO windrow.event_draft (at, type, state, queue, kind, tenant, job_ids)
    VALUES (at, 'job.created', after, name, 'pgmq', sender, ids);
    IF is_bounded THEN
        PERFORM windrow_dialect.keep_bound(name);
    END IF;
    RETURN QUERY SELECT unnest(numbers);
END
$$;

-- Reading: _bring_back, _pick and _take are called by functions with settings, which cost too much to be made
-- in each. One of them is that nothing is sorted: so no plan but the one by the index in the right order
-- is left, whatever the statistics say.

-- Make what is due visible, and what was read and has not been heard of since.
CREATE OR REPLACE FUNCTION pgmq._bring_back(name text, at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    expired uuid[];
BEGIN
    -- Looked for first, because mostly there is nothing and a look is cheaper.
    PERFORM FROM windrow.job_live
      WHERE state = 'scheduled' AND number IS NOT NULL AND queue = name
        AND run_at AT TIME ZONE 'UTC' <= at AT TIME ZONE 'UTC'
      ORDER BY run_at AT TIME ZONE 'UTC'
      LIMIT 1;
    IF FOUND THEN
        PERFORM pgmq._stage(name, at);
    END IF;
    SELECT array_agg(token) INTO expired
      FROM (SELECT token FROM windrow.lease
             WHERE token >= pgmq._token(name, to_timestamp(0), '\x000000000000')
               AND token <= pgmq._token(name, at, '\xffffffffffff')
               AND expires_at <= at
             ORDER BY token
             LIMIT 1000) AS found;
    IF expired IS NOT NULL THEN
        PERFORM pgmq._rescue(name, at, expired);
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION pgmq._stage(name text, at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH due AS MATERIALIZED (
        SELECT id FROM windrow.job_live
         WHERE state = 'scheduled' AND number IS NOT NULL AND queue = name
           AND run_at AT TIME ZONE 'UTC' <= at AT TIME ZONE 'UTC'
         ORDER BY run_at AT TIME ZONE 'UTC'
         LIMIT 1000
           FOR UPDATE SKIP LOCKED
    ),
    staged AS (
        UPDATE windrow.job_live AS job
           SET state = CASE WHEN job.limit_keys IS NULL THEN 'ready' ELSE 'held' END
         WHERE job.id = ANY (ARRAY(SELECT id FROM due))
        RETURNING job.state
    )
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), name, 'scheduled' FROM staged HAVING count(*) > 0
     UNION ALL
    SELECT count(*), name, state FROM staged GROUP BY state;
END
$$;

-- The same for messages that a worker of Windrow left, when there is none that would rescue them. Only
-- for readers with nothing else to do: it reads all leases. The tally is folded for the same reason.
CREATE OR REPLACE FUNCTION pgmq._stand_in(name text, at timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    expired uuid[];
BEGIN
    IF EXISTS (SELECT FROM windrow.leader WHERE expires_at > at) THEN
        RETURN false;
    END IF;
    IF random() < 0.01 THEN
        PERFORM pgmq._fold();
    END IF;
    SELECT array_agg(token) INTO expired
      FROM (SELECT token FROM windrow.lease
             WHERE expires_at <= at
               AND EXISTS (SELECT FROM windrow.job_live AS job
                            WHERE job.id = ANY (lease.job_ids) AND job.lease = lease.token
                              AND job.state = 'active' AND job.queue = name)
             LIMIT 1000) AS found;
    IF expired IS NULL THEN
        RETURN false;
    END IF;
    PERFORM pgmq._rescue(name, at, expired);
    RETURN true;
END
$$;

-- Many rows that count into few. Somebody who sleeps may be woken for nothing by it.
CREATE OR REPLACE FUNCTION pgmq._fold() RETURNS void LANGUAGE sql AS $$
    WITH folding AS (
        DELETE FROM windrow.tally
         WHERE (SELECT pg_try_advisory_xact_lock(hashtextextended('windrow.tally', 0)))
        RETURNING queue, state, n
    )
    INSERT INTO windrow.tally (n, queue, state)
    SELECT sum(n), queue, state FROM folding GROUP BY queue, state HAVING sum(n) <> 0
$$;

-- Messages of leases that ran out go back to wait: the crash is counted and the token forgotten.
CREATE OR REPLACE FUNCTION pgmq._rescue(name text, at timestamptz, tokens uuid[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
DECLARE
    one uuid;
BEGIN
    WITH expired AS MATERIALIZED (
        SELECT token, worker, job_ids
          FROM windrow.lease
         WHERE token = ANY (tokens) AND expires_at <= at
           FOR UPDATE SKIP LOCKED
    ),
    run AS MATERIALIZED (
        SELECT expired.worker, job.id
          FROM expired
         CROSS JOIN LATERAL (
               SELECT live.id
                 FROM windrow.job_live AS live
                WHERE live.id = ANY (expired.job_ids) AND live.lease = expired.token
                  AND live.state = 'active' AND live.queue = name AND live.unique_key IS NULL
                  AND live.stop_as IS NULL AND live.crashes + 1 < live.max_crashes
                  FOR UPDATE SKIP LOCKED) AS job
    ),
    rescued AS (
        UPDATE windrow.job_live AS job
           SET state = CASE WHEN job.limit_keys IS NULL THEN 'ready' ELSE 'held' END,
               run_at = at, crashes = job.crashes + 1, lease = NULL
         WHERE job.id = ANY (ARRAY(SELECT id FROM run))
        RETURNING job.state
    ),
    noted AS (
        INSERT INTO windrow.job_error (at, job_id, reason, message)
        SELECT at, id, 'crash', format('the lease ran out (worker %s)', worker) FROM run
    ),
    ended AS (
        DELETE FROM windrow.lease
         USING expired
         WHERE lease.token = expired.token
           AND NOT EXISTS (
               SELECT FROM windrow.job_live AS job
                WHERE job.id = ANY (expired.job_ids) AND job.lease = expired.token
                  AND job.state = 'active' AND job.id <> ALL (ARRAY(SELECT id FROM run)))
    )
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), name, 'active' FROM rescued HAVING count(*) > 0
     UNION ALL
    SELECT count(*), name, state FROM rescued GROUP BY state;

    FOR one IN
        SELECT job.id
          FROM windrow.lease
         CROSS JOIN LATERAL (
               SELECT live.id FROM windrow.job_live AS live
                WHERE live.id = ANY (lease.job_ids) AND live.lease = lease.token
                  AND live.state = 'active' AND live.queue = name
                  FOR UPDATE SKIP LOCKED) AS job
         WHERE lease.token = ANY (tokens) AND lease.expires_at <= at
    LOOP
        PERFORM windrow_dialect.rescue_job(one);
    END LOOP;
END
$$;

-- The best visible messages, locked: their ids, best first. Those that others have locked are passed over.
CREATE OR REPLACE FUNCTION pgmq._pick(name text, qty integer, conditional jsonb) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
    is_closed boolean;
    picked uuid[];
BEGIN
    SELECT (SELECT is_paused FROM windrow.queue WHERE queue.name = _pick.name) INTO is_closed
      FROM pgmq.meta WHERE queue_name = _pick.name;
    IF NOT FOUND THEN
        PERFORM pgmq._require_queue(name);
    ELSIF is_closed THEN
        RETURN NULL;
    END IF;
    PERFORM pgmq._bring_back(name, at);
    FOR look IN 1 .. 2 LOOP
        IF conditional IS NULL OR conditional = '{}' THEN
            SELECT array_agg(id) INTO picked
              FROM (SELECT job.id
                      FROM windrow.job_live AS job
                     WHERE job.state = 'ready' AND job.queue = name
                       AND (job.group_id IS NULL OR job.group_id <> ALL (
                               ARRAY(SELECT id FROM windrow.job_group WHERE is_paused)))
                       AND (job.limit_keys IS NULL OR NOT job.limit_keys && ARRAY(
                               SELECT key FROM windrow.job_limit WHERE parked_until > at))
                     ORDER BY job.priority DESC, job.seq
                     LIMIT qty
                       FOR UPDATE SKIP LOCKED) AS found;
        ELSE
            SELECT array_agg(id) INTO picked
              FROM (SELECT job.id
                      FROM windrow.job_live AS job
                     WHERE job.state = 'ready' AND job.queue = name
                       AND (job.group_id IS NULL OR job.group_id <> ALL (
                               ARRAY(SELECT id FROM windrow.job_group WHERE is_paused)))
                       AND (job.limit_keys IS NULL OR NOT job.limit_keys && ARRAY(
                               SELECT key FROM windrow.job_limit WHERE parked_until > at))
                       AND (SELECT stored.payload::jsonb @> conditional
                              FROM windrow.job_payload AS stored WHERE stored.id = job.id)
                     ORDER BY job.priority DESC, job.seq
                     LIMIT qty
                       FOR UPDATE SKIP LOCKED) AS found;
        END IF;
        EXIT WHEN look = 2 OR coalesce(cardinality(picked), 0) >= qty
                  OR NOT pgmq._stand_in(name, at);
    END LOOP;
    RETURN picked;
END
$$;

-- Make messages active that are ready and locked, under one lease; returns them in the order given.
CREATE OR REPLACE FUNCTION pgmq._take(name text, ids uuid[], seconds integer)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
DECLARE
    began CONSTANT timestamptz := clock_timestamp();
    over CONSTANT timestamptz := began + make_interval(secs => seconds);
    new_token CONSTANT uuid := pgmq._token(name, over, substring(uuid_send(gen_random_uuid()) FROM 11));
    counter CONSTANT regclass := pgmq._counter(name);
BEGIN
    IF ids IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO windrow.lease (token, claimed_at, expires_at, seconds, worker, job_ids)
    VALUES (new_token, began, over, _take.seconds, 'pgmq', ids);
    RETURN QUERY
    WITH taken AS (
        UPDATE windrow.job_live AS job
           SET state = 'active', lease = new_token, runs = job.runs + 1, started_at = began,
               number = coalesce(job.number, nextval(counter))  -- as one from before the queue was made
         WHERE job.id = ANY (ids)
        RETURNING job.id, job.number, job.runs, job.created_at, job.kind, job.tenant, job.group_id
    ),
    tallied AS (
        INSERT INTO windrow.tally (n, queue, state)
        SELECT -count(*), name, 'ready' FROM taken
         UNION ALL
        SELECT count(*), name, 'active' FROM taken
    ),
    drafted AS (
        INSERT INTO windrow.event_draft (at, type, state, queue, kind, tenant, group_id, job_ids)
        SELECT began, 'job.started', 'active', name, kind, tenant, group_id, array_agg(id)
          FROM taken
         GROUP BY kind, tenant, group_id
    )
    SELECT taken.number, taken.runs, taken.created_at, began, over, stored.payload::jsonb,
           stored.headers::jsonb
      FROM unnest(ids) WITH ORDINALITY AS given (id, place)
      JOIN taken USING (id)
     CROSS JOIN LATERAL (
           SELECT payload, headers FROM windrow.job_payload AS stored
            WHERE stored.id = taken.id
           OFFSET 0) AS stored
     ORDER BY given.place;
END
$$;

-- Messages as they are, by their ids.
CREATE OR REPLACE FUNCTION pgmq._show(ids uuid[]) RETURNS SETOF pgmq.message_record
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
BEGIN
    RETURN QUERY
    SELECT job.number, job.runs, job.created_at, job.started_at,
           CASE WHEN job.state = 'active'
                THEN (SELECT lease.expires_at FROM windrow.lease WHERE lease.token = job.lease)
                ELSE job.run_at END,
           stored.payload::jsonb, stored.headers::jsonb
      FROM unnest(ids) WITH ORDINALITY AS given (id, place)
     CROSS JOIN LATERAL (
           SELECT * FROM windrow.job_live AS live WHERE live.id = given.id OFFSET 0) AS job
     CROSS JOIN LATERAL (
           SELECT payload, headers FROM windrow.job_payload AS stored
            WHERE stored.id = given.id
           OFFSET 0) AS stored
     ORDER BY given.place;
END
$$;

-- Messages by their numbers, locked, in the order of their ids. With `reads`, only one that has been read
-- so many times and not since.
CREATE OR REPLACE FUNCTION pgmq._lock(name text, numbers bigint[], reads integer DEFAULT NULL)
RETURNS uuid[] LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
DECLARE
    -- One by one, and then by id: else a plan that was made when there was little goes through all of
    -- the queue.
    found CONSTANT uuid[] := ARRAY(
        SELECT job.id
          FROM unnest(numbers) AS given (number)
         CROSS JOIN LATERAL (
               SELECT live.id FROM windrow.job_live AS live
                WHERE live.queue = name AND live.number = given.number
               OFFSET 0) AS job);
BEGIN
    RETURN ARRAY(SELECT job.id
                   FROM windrow.job_live AS job
                  WHERE job.id = ANY (found) AND job.state <> 'waiting'
                    AND (reads IS NULL OR job.runs = reads)
                  ORDER BY job.id
                    FOR UPDATE);
END
$$;

-- The leases under which messages are read.
CREATE OR REPLACE FUNCTION pgmq._tokens(ids uuid[]) RETURNS uuid[] LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
BEGIN
    RETURN ARRAY(SELECT DISTINCT job.lease FROM windrow.job_live AS job
                  WHERE job.id = ANY (ids) AND job.state = 'active');
END
$$;

-- Remove leases that hold nothing any more. The CASE keeps the question to one lease at a time: as a join
-- it could be planned over all jobs.
CREATE OR REPLACE FUNCTION pgmq._end_leases(tokens uuid[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
BEGIN
    DELETE FROM windrow.lease
     WHERE lease.token = ANY (tokens)
       AND CASE WHEN cardinality(lease.job_ids) = 0 THEN true
                ELSE NOT EXISTS (SELECT FROM windrow.job_live AS job
                                  WHERE job.id = ANY (lease.job_ids) AND job.lease = lease.token
                                    AND job.state = 'active') END;
END
$$;

-- Complete messages that are locked, and keep them as long as their queue says: for ever by default. They
-- forget their lease: whoever holds one of another worker finds it lost. Returns their numbers.
CREATE OR REPLACE FUNCTION pgmq._archive(name text, ids uuid[]) RETURNS SETOF bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
    keep CONSTANT bigint := coalesce(
        (SELECT completed_seconds FROM windrow.queue WHERE queue.name = _archive.name), -1);
    ended bigint[];
    tokens uuid[];
    one record;
BEGIN
    WITH gone AS (
        DELETE FROM windrow.job_live AS job
         WHERE job.id = ANY (ids)
           AND job.group_id IS NULL AND job.root_of IS NULL AND job.unique_key IS NULL
        RETURNING job.*
    ),
    moved AS (
        INSERT INTO windrow.job_finished (
            id, seq, queue, kind, state, priority, run_at, created_at, started_at, finished_at,
            expires_at, attempts, crashes, runs, max_attempts, max_crashes, lease_seconds,
            retention_seconds, tenant, limit_keys, max_hold_seconds, is_cleaned, leaf, number)
        SELECT id, seq, queue, kind, 'completed', priority, run_at, created_at, started_at, at,
               CASE WHEN keep = -1 THEN 'infinity' ELSE at + keep * interval '1 second' END,
               attempts, crashes, runs, max_attempts, max_crashes, lease_seconds,
               retention_seconds, tenant, limit_keys, max_hold_seconds, is_cleaned, 0, number
          FROM gone
    ),
    drafted AS (
        INSERT INTO windrow.event_draft (at, type, state, queue, kind, tenant, job_ids)
        SELECT at, 'job.finished', 'completed', name, kind, tenant, array_agg(id)
          FROM gone
         GROUP BY kind, tenant
    ),
    tallied AS (
        INSERT INTO windrow.tally (n, queue, state)
        SELECT -count(*), name, state FROM gone GROUP BY state
         UNION ALL
        SELECT count(*), name, 'completed' FROM gone HAVING count(*) > 0
    )
    SELECT array_agg(number ORDER BY number),
           array_agg(DISTINCT lease) FILTER (WHERE state = 'active')
      INTO ended, tokens
      FROM gone;
    IF tokens IS NOT NULL THEN
        PERFORM pgmq._end_leases(tokens);
    END IF;
    RETURN QUERY SELECT unnest(ended);
    IF cardinality(ended) = cardinality(ids) THEN
        RETURN;
    END IF;

    FOR one IN SELECT id, number FROM windrow.job_live AS job WHERE job.id = ANY (ids) LOOP
        PERFORM windrow_dialect.finish_job(one.id, 'completed');
        UPDATE windrow.job_finished
           SET lease = NULL,
               leaf = CASE WHEN group_id IS NULL THEN 0 ELSE leaf END,
               expires_at = CASE WHEN group_id IS NOT NULL THEN expires_at
                                 WHEN keep = -1 THEN 'infinity'
                                 ELSE finished_at + keep * interval '1 second' END
         WHERE id = one.id;
        RETURN NEXT one.number;
    END LOOP;
END
$$;

-- Remove messages without a trace, in the order of their ids. Returns their numbers.
CREATE OR REPLACE FUNCTION pgmq._delete(name text, ids uuid[]) RETURNS SETOF bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
DECLARE
    ended bigint[];
    tokens uuid[];
    one record;
BEGIN
    WITH gone AS (
        DELETE FROM windrow.job_live AS job
         WHERE job.id = ANY (ids)
           AND job.group_id IS NULL AND job.root_of IS NULL AND job.unique_key IS NULL
        RETURNING job.id, job.number, job.state, job.runs, job.lease
    ),
    unstored AS (
        DELETE FROM windrow.job_payload WHERE id = ANY (ARRAY(SELECT gone.id FROM gone))
    ),
    forgotten AS (
        DELETE FROM windrow.job_error
         WHERE job_id = ANY (ARRAY(SELECT gone.id FROM gone WHERE gone.runs > 0))
    ),
    unstepped AS (
        DELETE FROM windrow.job_step
         WHERE job_id = ANY (ARRAY(SELECT gone.id FROM gone WHERE gone.runs > 0))
    ),
    unreported AS (
        DELETE FROM windrow.job_progress
         WHERE id = ANY (ARRAY(SELECT gone.id FROM gone WHERE gone.runs > 0))
    ),
    tallied AS (
        INSERT INTO windrow.tally (n, queue, state)
        SELECT -count(*), name, state FROM gone GROUP BY state
    )
    SELECT array_agg(number ORDER BY number),
           array_agg(DISTINCT lease) FILTER (WHERE state = 'active')
      INTO ended, tokens
      FROM gone;
    IF tokens IS NOT NULL THEN
        PERFORM pgmq._end_leases(tokens);
    END IF;
    RETURN QUERY SELECT unnest(ended);
    IF cardinality(ended) = cardinality(ids) THEN
        RETURN;
    END IF;

    FOR one IN SELECT id, number FROM windrow.job_live AS job
                WHERE job.id = ANY (ids) AND job.state <> 'waiting' LOOP
        PERFORM windrow_dialect.delete_job(one.id);
        RETURN NEXT one.number;
    END LOOP;
END
$$;

-- Make locked messages visible from `vt` on. One that a worker of Windrow runs stays with it until then.
CREATE OR REPLACE FUNCTION pgmq._set_vt(name text, ids uuid[], vt timestamptz) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
    is_later CONSTANT boolean := vt > at;
    new_token CONSTANT uuid := pgmq._token(name, vt, substring(uuid_send(gen_random_uuid()) FROM 11));
    ours uuid[];
    former uuid[];
    one uuid;
BEGIN
    -- Not read.
    WITH former AS MATERIALIZED (
        SELECT id, state FROM windrow.job_live WHERE id = ANY (ids) AND state <> 'active'
    ),
    moved AS (
        UPDATE windrow.job_live AS job
           SET run_at = vt,
               state = CASE WHEN job.state = 'paused' OR job.is_follower THEN job.state
                            WHEN is_later THEN 'scheduled'
                            WHEN job.limit_keys IS NOT NULL AND job.state <> 'ready' THEN 'held'
                            ELSE 'ready' END
         WHERE job.id = ANY (ARRAY(SELECT former.id FROM former))
        RETURNING job.id, job.state
    )
    INSERT INTO windrow.tally (n, queue, state)
    SELECT step, name, change.state
      FROM (SELECT former.state AS before, moved.state AS after, count(*) AS n
              FROM moved JOIN former USING (id)
             WHERE former.state <> moved.state
             GROUP BY former.state, moved.state) AS move
     CROSS JOIN LATERAL (VALUES (-n, before), (n, after)) AS change (step, state);
    IF NOT is_later THEN
        FOR one IN SELECT id FROM windrow.job_live WHERE id = ANY (ids) AND state = 'active' LOOP
            PERFORM windrow_dialect.return_job(one, vt);
            PERFORM windrow_dialect.forget_lease(one, NULL);
        END LOOP;
        RETURN;
    END IF;
    -- Run by a worker of Windrow: its lease, which may be for other jobs too, is never made shorter.
    UPDATE windrow.lease SET expires_at = greatest(lease.expires_at, vt)
     WHERE lease.token = ANY (ARRAY(SELECT job.lease FROM windrow.job_live AS job
                                     WHERE job.id = ANY (ids) AND job.state = 'active'))
       AND lease.worker <> 'pgmq';
    -- Read here: a lease of their own, and the former ones go when they hold nothing any more.
    ours := ARRAY(SELECT job.id FROM windrow.job_live AS job
                   WHERE job.id = ANY (ids) AND job.state = 'active'
                     AND (SELECT lease.worker = 'pgmq' FROM windrow.lease
                           WHERE lease.token = job.lease));
    IF ours <> '{}' THEN
        former := pgmq._tokens(ours);
        INSERT INTO windrow.lease (token, claimed_at, expires_at, seconds, worker, job_ids)
        VALUES (new_token, at, vt, ceil(date_part('epoch', vt - at)), 'pgmq', ours);
        UPDATE windrow.job_live SET lease = new_token WHERE id = ANY (ours);
        PERFORM pgmq._end_leases(former);
    END IF;
END
$$;
