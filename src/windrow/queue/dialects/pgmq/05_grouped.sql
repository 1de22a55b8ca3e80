-- Reads that keep the order inside groups. The group of a message is its header x-pgmq-group; those that
-- have none are one group. A group is read from only while its first message is visible: while that one
-- is being worked on, those behind it wait. Who reads a group holds it until the transaction ends.

-- The live messages of a queue, with their groups, first to last.
CREATE OR REPLACE FUNCTION pgmq._grouped(name text)
RETURNS TABLE (id uuid, seq bigint, state text, fifo text) LANGUAGE sql AS $$
    SELECT job.id, job.seq, job.state,
           coalesce((SELECT stored.headers ->> 'x-pgmq-group'
                       FROM windrow.job_payload AS stored WHERE stored.id = job.id),
                    '_default_fifo_group')
      FROM windrow.job_live AS job
     WHERE job.queue = name AND job.state <> 'waiting'
     ORDER BY abs(job.seq)
$$;

-- `how`: 'batch', as many as there are of the first group, then of the next; 'turns', the first of each
-- group, then the second of each; 'heads', only the first of each.
CREATE OR REPLACE FUNCTION pgmq._read_grouped(name text, vt integer, qty integer, how text)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
    held text[];
    wanted uuid[];
    picked uuid[];
BEGIN
    PERFORM pgmq._require_queue(name);
    IF qty <= 0
       OR EXISTS (SELECT FROM windrow.queue WHERE queue.name = _read_grouped.name AND is_paused) THEN
        RETURN;
    END IF;
    PERFORM pgmq._bring_back(name, at);
    -- No more groups than are needed are taken hold of: each is a lock.
    SELECT array_agg(fifo) INTO held
      FROM (SELECT fifo
              FROM (SELECT fifo, min(seq) AS head,
                           (array_agg(state ORDER BY seq))[1] = 'ready' AS is_visible
                      FROM pgmq._grouped(name)
                     GROUP BY fifo
                     ORDER BY head
                    OFFSET 0) AS line
             WHERE is_visible
               AND pg_try_advisory_xact_lock(
                       hashtextextended(format('pgmq %s %s', name, fifo), 0))
             LIMIT qty) AS found;
    IF held IS NULL THEN
        PERFORM pgmq._stand_in(name, at);
        RETURN;
    END IF;
    -- Looked at again: somebody may have read from a group just before it was ours.
    SELECT array_agg(id ORDER BY place) INTO wanted
      FROM (SELECT id,
                   row_number() OVER (
                       ORDER BY CASE WHEN how = 'batch' THEN head ELSE rank END,
                                CASE WHEN how = 'batch' THEN rank ELSE head END) AS place
              FROM (SELECT id, state, head_state,
                           row_number() OVER (PARTITION BY fifo ORDER BY seq) AS rank,
                           head
                      FROM (SELECT id, seq, state, fifo, min(seq) OVER line AS head,
                                   first_value(state) OVER line AS head_state
                              FROM pgmq._grouped(name)
                             WHERE fifo = ANY (held)
                            WINDOW line AS (PARTITION BY fifo ORDER BY seq)) AS message
                     WHERE state = 'ready') AS ranked
             WHERE head_state = 'ready' AND (how <> 'heads' OR rank = 1)) AS placed
     WHERE place <= qty;
    -- Those that another reader has locked are passed over, with all behind them in their group.
    SELECT array_agg(id) INTO picked
      FROM (SELECT id FROM windrow.job_live AS job
             WHERE job.id = ANY (wanted) AND job.state = 'ready'
               FOR UPDATE SKIP LOCKED) AS locked;
    SELECT array_agg(id ORDER BY place) INTO picked
      FROM (SELECT given.id, given.place,
                   bool_and(given.id = ANY (picked)) OVER (
                       PARTITION BY message.fifo ORDER BY given.place) AS is_next
              FROM unnest(wanted) WITH ORDINALITY AS given (id, place)
              JOIN pgmq._grouped(name) AS message USING (id)) AS checked
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
RETURNS SETOF pgmq.message_record LANGUAGE sql AS $$
    SELECT * FROM pgmq._read_grouped(queue_name, vt, qty, 'batch')
$$;
CREATE OR REPLACE FUNCTION pgmq.read_grouped_rr(queue_name text, vt integer, qty integer)
RETURNS SETOF pgmq.message_record LANGUAGE sql AS $$
    SELECT * FROM pgmq._read_grouped(queue_name, vt, qty, 'turns')
$$;
CREATE OR REPLACE FUNCTION pgmq.read_grouped_head(queue_name text, vt integer, qty integer)
RETURNS SETOF pgmq.message_record LANGUAGE sql AS $$
    SELECT * FROM pgmq._read_grouped(queue_name, vt, qty, 'heads')
$$;
CREATE OR REPLACE FUNCTION pgmq.read_grouped_with_poll(
    queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5,
    poll_interval_ms integer DEFAULT 100)
RETURNS SETOF pgmq.message_record LANGUAGE sql AS $$
    SELECT * FROM pgmq._poll_grouped(queue_name, vt, qty, 'batch', max_poll_seconds,
                                     poll_interval_ms)
$$;
CREATE OR REPLACE FUNCTION pgmq.read_grouped_rr_with_poll(
    queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5,
    poll_interval_ms integer DEFAULT 100)
RETURNS SETOF pgmq.message_record LANGUAGE sql AS $$
    SELECT * FROM pgmq._poll_grouped(queue_name, vt, qty, 'turns', max_poll_seconds,
                                     poll_interval_ms)
$$;
CREATE OR REPLACE FUNCTION pgmq.read_grouped_head_with_poll(
    queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5,
    poll_interval_ms integer DEFAULT 100)
RETURNS SETOF pgmq.message_record LANGUAGE sql AS $$
    SELECT * FROM pgmq._poll_grouped(queue_name, vt, qty, 'heads', max_poll_seconds,
                                     poll_interval_ms)
$$;

-- Nothing to make: kept for those who call them.
CREATE OR REPLACE FUNCTION pgmq.create_fifo_index(queue_name text) RETURNS void
LANGUAGE sql AS $$
    SELECT pgmq._require_queue(queue_name)
$$;
CREATE OR REPLACE FUNCTION pgmq.create_fifo_indexes_all() RETURNS void LANGUAGE sql AS $$
    SELECT
$$;
