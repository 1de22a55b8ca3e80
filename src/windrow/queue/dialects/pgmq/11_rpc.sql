-- What a web client may call: pgmq_public as Supabase has it, for .schema('pgmq_public').rpc('send', …),
-- and the same in public under the names of PGMQ's functions, for .rpc('pgmq_send', …).

CREATE SCHEMA IF NOT EXISTS pgmq_public;

CREATE OR REPLACE FUNCTION pgmq_public.send(
    queue_name text, message jsonb, sleep_seconds integer DEFAULT 0)
RETURNS SETOF bigint LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.send(queue_name, message, sleep_seconds);
END
$$;
CREATE OR REPLACE FUNCTION pgmq_public.send_batch(
    queue_name text, messages jsonb[], sleep_seconds integer DEFAULT 0)
RETURNS SETOF bigint LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.send_batch(queue_name, messages, sleep_seconds);
END
$$;
CREATE OR REPLACE FUNCTION pgmq_public.read(queue_name text, sleep_seconds integer, n integer)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.read(queue_name, sleep_seconds, n);
END
$$;
CREATE OR REPLACE FUNCTION pgmq_public.pop(queue_name text)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.pop(queue_name);
END
$$;
CREATE OR REPLACE FUNCTION pgmq_public.archive(queue_name text, message_id bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN pgmq.archive(queue_name, message_id);
END
$$;
CREATE OR REPLACE FUNCTION pgmq_public.delete(queue_name text, message_id bigint)
RETURNS boolean LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN pgmq.delete(queue_name, message_id);
END
$$;

CREATE OR REPLACE FUNCTION public.pgmq_send(queue_name text, msg jsonb, delay integer DEFAULT 0)
RETURNS SETOF bigint LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.send(queue_name, msg, delay);
END
$$;
CREATE OR REPLACE FUNCTION public.pgmq_send_batch(
    queue_name text, msgs jsonb[], delay integer DEFAULT 0)
RETURNS SETOF bigint LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.send_batch(queue_name, msgs, delay);
END
$$;
CREATE OR REPLACE FUNCTION public.pgmq_read(queue_name text, vt integer, qty integer)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.read(queue_name, vt, qty);
END
$$;
CREATE OR REPLACE FUNCTION public.pgmq_pop(queue_name text)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.pop(queue_name);
END
$$;
CREATE OR REPLACE FUNCTION public.pgmq_set_vt(queue_name text, msg_id bigint, vt integer)
RETURNS SETOF pgmq.message_record LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq.set_vt(queue_name, msg_id, vt);
END
$$;
-- With read_ct: only if it has not been read again since.
CREATE OR REPLACE FUNCTION public.pgmq_archive(
    queue_name text, msg_id bigint, read_ct integer DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF read_ct IS NULL THEN
        RETURN pgmq.archive(queue_name, msg_id);
    END IF;
    RETURN pgmq.archive(queue_name, msg_id, read_ct);
END
$$;
CREATE OR REPLACE FUNCTION public.pgmq_delete(
    queue_name text, msg_id bigint, read_ct integer DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF read_ct IS NULL THEN
        RETURN pgmq.delete(queue_name, msg_id);
    END IF;
    RETURN pgmq.delete(queue_name, msg_id, read_ct);
END
$$;
