-- Topics: messages to all queues that are bound by a pattern to the routing key.

CREATE OR REPLACE FUNCTION pgmq._validate_words(what text, words text, extra text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF words IS NULL OR words = '' THEN
        RAISE EXCEPTION '% cannot be NULL or empty', what;
    ELSIF length(words) > 255 THEN
        RAISE EXCEPTION '% length cannot exceed 255 characters, got % characters', what, length(words);
    ELSIF translate(words, extra, '') ~ '[^A-Za-z0-9._-]' THEN
        RAISE EXCEPTION '% contains invalid characters, got: %', what, words;
    ELSIF words ~ '^\.' THEN
        RAISE EXCEPTION '% cannot start with a dot, got: %', what, words;
    ELSIF words ~ '\.$' THEN
        RAISE EXCEPTION '% cannot end with a dot, got: %', what, words;
    ELSIF words ~ '\.\.' THEN
        RAISE EXCEPTION '% cannot contain consecutive dots, got: %', what, words;
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION pgmq.validate_routing_key(routing_key text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM pgmq._validate_words('routing_key', routing_key, '');
    RETURN true;
END
$$;
CREATE OR REPLACE FUNCTION pgmq.validate_topic_pattern(pattern text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM pgmq._validate_words('pattern', pattern, '*#');
    IF pattern ~ '[*#][*#]' THEN
        RAISE EXCEPTION 'pattern cannot contain adjacent wildcards (**, ##, *#, #*), got: %', pattern;
    END IF;
    RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION pgmq.bind_topic(pattern text, queue_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pgmq.validate_topic_pattern(pattern);
    IF queue_name IS NULL OR queue_name = '' THEN
        RAISE EXCEPTION 'queue_name cannot be NULL or empty';
    ELSIF NOT EXISTS (SELECT FROM pgmq.meta WHERE meta.queue_name = bind_topic.queue_name) THEN
        RAISE EXCEPTION 'Queue "%" does not exist. Create it first, by pgmq.create()', queue_name;
    END IF;
    INSERT INTO pgmq.topic_bindings (pattern, queue_name)
    VALUES (bind_topic.pattern, bind_topic.queue_name)
        ON CONFLICT DO NOTHING;
END
$$;
CREATE OR REPLACE FUNCTION pgmq.unbind_topic(pattern text, queue_name text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF pattern IS NULL OR pattern = '' THEN
        RAISE EXCEPTION 'pattern cannot be NULL or empty';
    ELSIF queue_name IS NULL OR queue_name = '' THEN
        RAISE EXCEPTION 'queue_name cannot be NULL or empty';
    END IF;
    DELETE FROM pgmq.topic_bindings AS bound
     WHERE bound.pattern = unbind_topic.pattern AND bound.queue_name = unbind_topic.queue_name;
    RETURN FOUND;
END
$$;

CREATE OR REPLACE FUNCTION pgmq.list_topic_bindings()
RETURNS TABLE (pattern text, queue_name text, bound_at timestamptz, compiled_regex text)
LANGUAGE sql STABLE AS $$
    SELECT bound.pattern, bound.queue_name, bound.bound_at, bound.compiled_regex
      FROM pgmq.topic_bindings AS bound
     ORDER BY bound.bound_at DESC, bound.pattern, bound.queue_name
$$;
CREATE OR REPLACE FUNCTION pgmq.list_topic_bindings(queue_name text)
RETURNS TABLE (pattern text, queue_name text, bound_at timestamptz, compiled_regex text)
LANGUAGE sql STABLE AS $$
    SELECT bound.pattern, bound.queue_name, bound.bound_at, bound.compiled_regex
      FROM pgmq.topic_bindings AS bound
     WHERE bound.queue_name = $1
     ORDER BY bound.bound_at DESC, bound.pattern
$$;
CREATE OR REPLACE FUNCTION pgmq.test_routing(routing_key text)
RETURNS TABLE (pattern text, queue_name text, compiled_regex text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM pgmq.validate_routing_key(routing_key);
    RETURN QUERY
    SELECT bound.pattern, bound.queue_name, bound.compiled_regex
      FROM pgmq.topic_bindings AS bound
     WHERE routing_key ~ bound.compiled_regex
     ORDER BY bound.pattern;
END
$$;

-- To each queue once, however many of its patterns match.
CREATE OR REPLACE FUNCTION pgmq.send_batch_topic(
    routing_key text, msgs jsonb[], headers jsonb[], delay timestamptz)
RETURNS TABLE (queue_name text, msg_id bigint) LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    PERFORM pgmq.validate_routing_key(routing_key);
    PERFORM pgmq._validate_batch_params(msgs, headers);
    FOR name IN
        SELECT DISTINCT bound.queue_name FROM pgmq.topic_bindings AS bound
         WHERE routing_key ~ bound.compiled_regex
         ORDER BY bound.queue_name
    LOOP
        RETURN QUERY SELECT name, sent FROM pgmq._send_batch(name, msgs, headers, delay) AS sent;
    END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION pgmq.send_batch_topic(routing_key text, msgs jsonb[])
RETURNS TABLE (queue_name text, msg_id bigint) LANGUAGE sql AS $$
    SELECT * FROM pgmq.send_batch_topic(routing_key, msgs, NULL, clock_timestamp())
$$;
CREATE OR REPLACE FUNCTION pgmq.send_batch_topic(routing_key text, msgs jsonb[], headers jsonb[])
RETURNS TABLE (queue_name text, msg_id bigint) LANGUAGE sql AS $$
    SELECT * FROM pgmq.send_batch_topic(routing_key, msgs, headers, clock_timestamp())
$$;
CREATE OR REPLACE FUNCTION pgmq.send_batch_topic(routing_key text, msgs jsonb[], delay integer)
RETURNS TABLE (queue_name text, msg_id bigint) LANGUAGE sql AS $$
    SELECT * FROM pgmq.send_batch_topic(routing_key, msgs, NULL,
                                        clock_timestamp() + make_interval(secs => delay))
$$;
CREATE OR REPLACE FUNCTION pgmq.send_batch_topic(routing_key text, msgs jsonb[], delay timestamptz)
RETURNS TABLE (queue_name text, msg_id bigint) LANGUAGE sql AS $$
    SELECT * FROM pgmq.send_batch_topic(routing_key, msgs, NULL, delay)
$$;
CREATE OR REPLACE FUNCTION pgmq.send_batch_topic(
    routing_key text, msgs jsonb[], headers jsonb[], delay integer)
RETURNS TABLE (queue_name text, msg_id bigint) LANGUAGE sql AS $$
    SELECT * FROM pgmq.send_batch_topic(routing_key, msgs, headers,
                                        clock_timestamp() + make_interval(secs => delay))
$$;

-- Returns to how many queues it went.
CREATE OR REPLACE FUNCTION pgmq.send_topic(
    routing_key text, msg jsonb, headers jsonb, delay integer)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pgmq.validate_routing_key(routing_key);
    IF msg IS NULL THEN
        RAISE EXCEPTION 'msg cannot be NULL';
    ELSIF delay < 0 THEN
        RAISE EXCEPTION 'delay cannot be negative, got: %', delay;
    END IF;
    RETURN (SELECT count(*)
              FROM pgmq.send_batch_topic(routing_key, ARRAY[msg], ARRAY[headers],
                                         coalesce(delay, 0)));
END
$$;
CREATE OR REPLACE FUNCTION pgmq.send_topic(routing_key text, msg jsonb) RETURNS integer
LANGUAGE sql AS $$
    SELECT pgmq.send_topic(routing_key, msg, NULL, 0)
$$;
CREATE OR REPLACE FUNCTION pgmq.send_topic(routing_key text, msg jsonb, delay integer)
RETURNS integer LANGUAGE sql AS $$
    SELECT pgmq.send_topic(routing_key, msg, NULL, delay)
$$;
-- Not in PGMQ, though its client for Python calls it.
CREATE OR REPLACE FUNCTION pgmq.send_topic(routing_key text, msg jsonb, headers jsonb)
RETURNS integer LANGUAGE sql AS $$
    SELECT pgmq.send_topic(routing_key, msg, headers, 0)
$$;
