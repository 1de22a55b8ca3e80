-- Notifications on the channel pgmq.q_<queue>.INSERT, for those who asked for them: when a message was
-- sent, and also when a delay has ended or a message came back, as soon as somebody notices: a worker of
-- Windrow, or another reader. Noticed where Windrow notices it: in the tally, and in the part of it
-- that has what Windrow itself enqueues.

-- It runs for whoever commits, a tenant too, and tells nothing but that there is something: so it has the
-- rights of its owner, like the triggers of Windrow that do the same.
CREATE OR REPLACE FUNCTION pgmq.notify_queue_listeners() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted pgmq.notify_insert_throttle;
BEGIN
    IF current_setting('windrow.is_folding', true) = 'on' THEN
        RETURN NULL;
    END IF;
    SELECT * INTO wanted FROM pgmq.notify_insert_throttle WHERE queue_name = NEW.queue;
    IF wanted.queue_name IS NULL OR wanted.throttle_interval_ms > 0
       AND clock_timestamp() - wanted.last_notified_at
           < wanted.throttle_interval_ms * interval '1 millisecond' THEN
        RETURN NULL;
    END IF;
    -- Nobody waits here for another that commits, not even to write down when it was.
    PERFORM FROM pgmq.notify_insert_throttle WHERE queue_name = NEW.queue
        FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        UPDATE pgmq.notify_insert_throttle SET last_notified_at = clock_timestamp()
         WHERE queue_name = NEW.queue;
    ELSIF wanted.throttle_interval_ms > 0 THEN
        RETURN NULL;
    END IF;
    PERFORM pg_notify('pgmq.q_' || NEW.queue || '.INSERT', NULL);
    RETURN NULL;
END
$$;
DROP TRIGGER IF EXISTS pgmq_notify ON windrow.tally;
CREATE CONSTRAINT TRIGGER pgmq_notify AFTER INSERT ON windrow.tally
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.n > 0 AND NEW.state = 'ready')
    EXECUTE FUNCTION pgmq.notify_queue_listeners();
DROP TRIGGER IF EXISTS pgmq_notify ON windrow.tally_told;
CREATE CONSTRAINT TRIGGER pgmq_notify AFTER INSERT ON windrow.tally_told
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.n > 0 AND NEW.state = 'ready')
    EXECUTE FUNCTION pgmq.notify_queue_listeners();

CREATE OR REPLACE FUNCTION pgmq.enable_notify_insert(
    queue_name text, throttle_interval_ms integer DEFAULT 250)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF throttle_interval_ms < 0 THEN
        RAISE EXCEPTION 'throttle_interval_ms must be non-negative, got: %', throttle_interval_ms;
    ELSIF NOT EXISTS (SELECT FROM pgmq.meta
                       WHERE meta.queue_name = enable_notify_insert.queue_name) THEN
        RAISE EXCEPTION 'Queue "%" does not exist. Create it first, by pgmq.create()', queue_name;
    ELSIF octet_length(queue_name) > 49 THEN
        -- Found out when a message is sent, it would fail the sender.
        RAISE EXCEPTION 'the name of queue "%" is too long for a channel', queue_name;
    END IF;
    INSERT INTO pgmq.notify_insert_throttle AS former (queue_name, throttle_interval_ms)
    VALUES (enable_notify_insert.queue_name, enable_notify_insert.throttle_interval_ms)
        ON CONFLICT ON CONSTRAINT notify_insert_throttle_queue_name_key DO UPDATE
       SET throttle_interval_ms = excluded.throttle_interval_ms,
           last_notified_at = to_timestamp(0);
END
$$;
CREATE OR REPLACE FUNCTION pgmq.disable_notify_insert(queue_name text) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM pgmq.notify_insert_throttle AS wanted
     WHERE wanted.queue_name = disable_notify_insert.queue_name
$$;
CREATE OR REPLACE FUNCTION pgmq.update_notify_insert(queue_name text, throttle_interval_ms integer)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF throttle_interval_ms < 0 THEN
        RAISE EXCEPTION 'throttle_interval_ms must be non-negative, got: %', throttle_interval_ms;
    ELSIF NOT EXISTS (SELECT FROM pgmq.meta
                       WHERE meta.queue_name = update_notify_insert.queue_name) THEN
        RAISE EXCEPTION 'Queue "%" does not exist. Create it first, by pgmq.create()', queue_name;
    END IF;
    UPDATE pgmq.notify_insert_throttle AS wanted
       SET throttle_interval_ms = update_notify_insert.throttle_interval_ms,
           last_notified_at = to_timestamp(0)
     WHERE wanted.queue_name = update_notify_insert.queue_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Queue "%" does not have notify_insert enabled. Enable it first, by '
                        'pgmq.enable_notify_insert()', queue_name;
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION pgmq.list_notify_insert_throttles()
RETURNS TABLE (queue_name text, throttle_interval_ms integer, last_notified_at timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT wanted.queue_name, wanted.throttle_interval_ms, wanted.last_notified_at
      FROM pgmq.notify_insert_throttle AS wanted
     ORDER BY wanted.queue_name
$$;
