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

-- All messages, read or not; the archive stays.
CREATE OR REPLACE FUNCTION pgmq.purge_queue(queue_name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[];
    purged bigint := 0;
BEGIN
    PERFORM pgmq._require_queue(queue_name);
    LOOP
        ids := ARRAY(SELECT job.id FROM windrow.job_live AS job
                      WHERE job.queue = queue_name AND job.state <> 'waiting'
                      ORDER BY job.id
                      LIMIT 10000
                        FOR UPDATE);
        EXIT WHEN ids = '{}';
        purged := purged + (SELECT count(*) FROM pgmq._delete(queue_name, ids));
    END LOOP;
    RETURN purged;
END
$$;
