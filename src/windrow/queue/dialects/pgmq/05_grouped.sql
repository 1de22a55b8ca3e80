-- Reads that keep the order inside groups. The group of a message is its header x-pgmq-group; those that
-- have none are one group. A group is read from only while its first message is visible: while that one
-- is being worked on, those behind it wait. Who reads a group holds it until the transaction ends.

DO $$
BEGIN
    IF to_regtype('pgmq.place_in_line') IS NULL THEN
        CREATE TYPE pgmq.place_in_line AS (id uuid, fifo text, head bigint, place bigint);
    END IF;
END
$$;

-- Whether a queue has more than so many messages.
CREATE OR REPLACE FUNCTION pgmq._is_longer(name text, size bigint) RETURNS boolean
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
    RETURN EXISTS (SELECT FROM windrow.job_live AS live
                    WHERE live.queue = name AND live.number IS NOT NULL AND live.state <> 'waiting'
                    ORDER BY live.number
                   OFFSET size);
END
$$;

-- The visible messages of groups whose first message is visible, among the first `size` of a queue: each
-- with its group, the number of the group's first, and its place in the group.
CREATE OR REPLACE FUNCTION pgmq._line(name text, size bigint)
RETURNS TABLE (id uuid, fifo text, head bigint, place bigint) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
BEGIN
    RETURN QUERY
    SELECT placed.id, placed.fifo, placed.head, placed.place
      FROM (SELECT message.id, message.fifo, message.state,
                   first_value(message.number) OVER line AS head,
                   first_value(message.state) OVER line AS head_state,
                   count(*) FILTER (WHERE message.state = 'ready') OVER line AS place
              FROM (SELECT job.id, job.number, job.state,
                           coalesce(stored.headers ->> 'x-pgmq-group', '_default_fifo_group') AS fifo
                      FROM (SELECT live.id, live.number, live.state
                              FROM windrow.job_live AS live
                             WHERE live.queue = name AND live.number IS NOT NULL
                               AND live.state <> 'waiting'
                             ORDER BY live.number
                             LIMIT size) AS job
                     CROSS JOIN LATERAL (
                           SELECT headers FROM windrow.job_payload AS stored
                            WHERE stored.id = job.id
                           OFFSET 0) AS stored) AS message
            WINDOW line AS (PARTITION BY message.fifo ORDER BY message.number)) AS placed
     WHERE placed.head_state = 'ready' AND placed.state = 'ready';
END
$$;

-- `how`: 'batch', as many as there are of the first group, then of the next; 'turns', the first of each
-- group, then the second of each; 'heads', only the first of each. If its beginning says enough, no more of
-- the queue is looked at. No more groups than needed are taken hold of: each is a lock.
CREATE OR REPLACE FUNCTION pgmq._read_grouped(name text, vt integer, qty integer, how text)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
    size bigint := greatest(1000, 10 * qty);
    line pgmq.place_in_line[];
    held text[];
    wanted uuid[];
    fifos text[];
    locked uuid[];
    picked uuid[];
BEGIN
    PERFORM pgmq._require_queue(name);
    IF qty <= 0
       OR EXISTS (SELECT FROM windrow.queue WHERE queue.name = _read_grouped.name AND is_paused) THEN
        RETURN;
    END IF;
    PERFORM pgmq._bring_back(name, at);
    LOOP
        line := ARRAY(SELECT ROW (place.*)::pgmq.place_in_line FROM pgmq._line(name, size) AS place);
        SELECT array_agg(fifo) INTO held
          FROM (SELECT fifo
                  FROM (SELECT DISTINCT head, fifo FROM unnest(line)
                         ORDER BY head
                        OFFSET 0) AS line
                 WHERE pg_try_advisory_xact_lock(
                           hashtextextended(format('pgmq %s %s', name, fifo), 0))
                 LIMIT qty) AS found;
        EXIT WHEN CASE WHEN how = 'batch'
                       THEN (SELECT count(*) >= qty FROM unnest(line) WHERE fifo = held[1])
                       ELSE cardinality(held) >= qty END;
        EXIT WHEN NOT pgmq._is_longer(name, size);
        size := size * 8;
    END LOOP;
    IF held IS NULL THEN
        PERFORM pgmq._stand_in(name, at);
        RETURN;
    END IF;
    SELECT array_agg(id ORDER BY turn), array_agg(fifo ORDER BY turn) INTO wanted, fifos
      FROM (SELECT id, fifo,
                   row_number() OVER (ORDER BY CASE WHEN how = 'batch' THEN head ELSE place END,
                                               CASE WHEN how = 'batch' THEN place ELSE head END)
                       AS turn
              FROM unnest(line)
             WHERE fifo = ANY (held) AND (how <> 'heads' OR place = 1)) AS line
     WHERE turn <= qty;
    -- Those that another reader has locked, or read just before the group was ours, are passed over, with
    -- all behind them in their group.
    locked := ARRAY(SELECT job.id FROM windrow.job_live AS job
                     WHERE job.id = ANY (wanted) AND job.state = 'ready'
                       FOR UPDATE SKIP LOCKED);
    SELECT array_agg(id ORDER BY turn) INTO picked
      FROM (SELECT given.id, given.turn,
                   bool_and(given.id = ANY (locked)) OVER (
                       PARTITION BY given.fifo ORDER BY given.turn) AS is_next
              FROM unnest(wanted, fifos) WITH ORDINALITY AS given (id, fifo, turn)) AS line
     WHERE is_next;
    RETURN QUERY SELECT * FROM pgmq._take(name, picked, vt);
END
$$;

-- The same until there is something, or the time is over.
CREATE OR REPLACE FUNCTION pgmq._poll_grouped(
    name text, vt integer, qty integer, how text, max_poll_seconds integer,
    poll_interval_ms integer)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
DECLARE
    until CONSTANT timestamptz := clock_timestamp() + make_interval(secs => max_poll_seconds);
BEGIN
    LOOP
        RETURN QUERY SELECT * FROM pgmq._read_grouped(name, vt, qty, how);
        EXIT WHEN FOUND OR clock_timestamp() >= until;
        PERFORM pg_sleep(poll_interval_ms / 1000.0);
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION pgmq.read_grouped(queue_name text, vt integer, qty integer)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq._read_grouped(queue_name, vt, qty, 'batch');
END
$$;
CREATE OR REPLACE FUNCTION pgmq.read_grouped_rr(queue_name text, vt integer, qty integer)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq._read_grouped(queue_name, vt, qty, 'turns');
END
$$;
CREATE OR REPLACE FUNCTION pgmq.read_grouped_head(queue_name text, vt integer, qty integer)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq._read_grouped(queue_name, vt, qty, 'heads');
END
$$;
CREATE OR REPLACE FUNCTION pgmq.read_grouped_with_poll(
    queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5,
    poll_interval_ms integer DEFAULT 100)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq._poll_grouped(queue_name, vt, qty, 'batch', max_poll_seconds,
                                     poll_interval_ms);
END
$$;
CREATE OR REPLACE FUNCTION pgmq.read_grouped_rr_with_poll(
    queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5,
    poll_interval_ms integer DEFAULT 100)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq._poll_grouped(queue_name, vt, qty, 'turns', max_poll_seconds,
                                     poll_interval_ms);
END
$$;
CREATE OR REPLACE FUNCTION pgmq.read_grouped_head_with_poll(
    queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5,
    poll_interval_ms integer DEFAULT 100)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq._poll_grouped(queue_name, vt, qty, 'heads', max_poll_seconds,
                                     poll_interval_ms);
END
$$;

-- Nothing to make: kept for those who call them.
CREATE OR REPLACE FUNCTION pgmq.create_fifo_index(queue_name text) RETURNS void
LANGUAGE sql AS $$
    SELECT pgmq._require_queue(queue_name)
$$;
CREATE OR REPLACE FUNCTION pgmq.create_fifo_indexes_all() RETURNS void LANGUAGE sql AS $$
    SELECT
$$;
