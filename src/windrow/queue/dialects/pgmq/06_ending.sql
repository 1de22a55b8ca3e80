-- archive and delete: of one message, of many, and of one if it has not been read again since it was read
-- for the `read_ct`th time, so that somebody who was too slow does not end what another works on.

CREATE OR REPLACE FUNCTION pgmq._end_messages(
    name text, numbers bigint[], reads integer, is_kept boolean)
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pgmq._require_queue(name);
    IF is_kept THEN
        RETURN QUERY SELECT * FROM pgmq._archive(name, pgmq._lock(name, numbers, reads));
    ELSE
        RETURN QUERY SELECT * FROM pgmq._delete(name, pgmq._lock(name, numbers, reads));
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION pgmq.archive(queue_name text, msg_id bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pgmq._end_messages(queue_name, ARRAY[msg_id], NULL, true));
END
$$;
CREATE OR REPLACE FUNCTION pgmq.archive(queue_name text, msg_ids bigint[]) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq._end_messages(queue_name, msg_ids, NULL, true);
END
$$;
CREATE OR REPLACE FUNCTION pgmq.archive(queue_name text, msg_id bigint, read_ct integer)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN read_ct IS NOT NULL
           AND EXISTS (SELECT FROM pgmq._end_messages(queue_name, ARRAY[msg_id], read_ct, true));
END
$$;
CREATE OR REPLACE FUNCTION pgmq.delete(queue_name text, msg_id bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pgmq._end_messages(queue_name, ARRAY[msg_id], NULL, false));
END
$$;
CREATE OR REPLACE FUNCTION pgmq.delete(queue_name text, msg_ids bigint[]) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgmq._end_messages(queue_name, msg_ids, NULL, false);
END
$$;
CREATE OR REPLACE FUNCTION pgmq.delete(queue_name text, msg_id bigint, read_ct integer)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN read_ct IS NOT NULL
           AND EXISTS (SELECT FROM pgmq._end_messages(queue_name, ARRAY[msg_id], read_ct, false));
END
$$;

-- All messages, read or not; the archive stays. What is sent meanwhile stays too.
CREATE OR REPLACE FUNCTION pgmq.purge_queue(queue_name text) RETURNS bigint LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    step CONSTANT integer := 10000;
    ids CONSTANT uuid[] := ARRAY(SELECT job.id FROM windrow.job_live AS job
                                  WHERE job.queue = queue_name AND job.number IS NOT NULL
                                    AND job.state <> 'waiting'
                                  ORDER BY job.number);
    purged bigint := 0;
BEGIN
    PERFORM pgmq._require_queue(queue_name);
    FOR place IN 1 .. cardinality(ids) BY step LOOP
        purged := purged
                  + (SELECT count(*) FROM pgmq._delete(queue_name, ids[place : place + step - 1]));
    END LOOP;
    RETURN purged;
END
$$;
