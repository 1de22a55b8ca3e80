-- read, pop and set_vt. What is read comes best first.

CREATE OR REPLACE FUNCTION pgmq.read(
    queue_name text, vt integer, qty integer, conditional jsonb DEFAULT '{}')
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
    RETURN QUERY
    SELECT * FROM pgmq._take(queue_name, pgmq._pick(queue_name, qty, conditional), vt);
END
$$;

CREATE OR REPLACE FUNCTION pgmq.read_with_poll(
    queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5,
    poll_interval_ms integer DEFAULT 100, conditional jsonb DEFAULT '{}')
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
DECLARE
    until CONSTANT timestamptz := clock_timestamp() + make_interval(secs => max_poll_seconds);
BEGIN
    LOOP
        RETURN QUERY SELECT * FROM pgmq.read(queue_name, vt, qty, conditional);
        EXIT WHEN FOUND OR clock_timestamp() >= until;
        PERFORM pg_sleep(poll_interval_ms / 1000.0);
    END LOOP;
END
$$;

-- Read and deleted at once: if the reader dies, the message is lost.
CREATE OR REPLACE FUNCTION pgmq.pop(queue_name text, qty integer DEFAULT 1)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    ids uuid[];
BEGIN
    ids := pgmq._pick(queue_name, qty, NULL);
    IF ids IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT * FROM pgmq._show(ids);
    PERFORM pgmq._delete(queue_name, ids);
END
$$;

CREATE OR REPLACE FUNCTION pgmq.set_vt(queue_name text, msg_ids bigint[], vt timestamptz)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[];
BEGIN
    PERFORM pgmq._require_queue(queue_name);
    ids := pgmq._lock(queue_name, msg_ids);
    PERFORM pgmq._set_vt(queue_name, ids, vt);
    RETURN QUERY SELECT * FROM pgmq._show(ids) AS shown ORDER BY shown.msg_id;
END
$$;
CREATE OR REPLACE FUNCTION pgmq.set_vt(queue_name text, msg_ids bigint[], vt integer)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.set_vt(queue_name, msg_ids, clock_timestamp() + make_interval(secs => vt));
END
$$;
CREATE OR REPLACE FUNCTION pgmq.set_vt(queue_name text, msg_id bigint, vt timestamptz)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.set_vt(queue_name, ARRAY[msg_id], vt);
END
$$;
CREATE OR REPLACE FUNCTION pgmq.set_vt(queue_name text, msg_id bigint, vt integer)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.set_vt(queue_name, ARRAY[msg_id],
                              clock_timestamp() + make_interval(secs => vt));
END
$$;
