-- Queues: made, dropped, listed, measured.

CREATE OR REPLACE FUNCTION pgmq.acquire_queue_lock(queue_name text) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('pgmq queue ' || queue_name, 0))
$$;

CREATE OR REPLACE FUNCTION pgmq.validate_queue_name(queue_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- The limit of PGMQ; and names of relations are cut after 63 bytes, where two would become one.
    IF length(queue_name) > 47 OR octet_length(queue_name) > 61 THEN
        RAISE EXCEPTION 'queue name is too long, maximum length is 47 characters';
    END IF;
    IF queue_name IS NULL OR btrim(queue_name) = '' THEN
        RAISE EXCEPTION 'queue name cannot be NULL or empty';
    END IF;
END
$$;

-- The name of a relation of a queue, for those who build statements of their own.
CREATE OR REPLACE FUNCTION pgmq.format_table_name(queue_name text, prefix text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF queue_name ~ '\$|;|--|''' THEN
        RAISE EXCEPTION 'queue name contains invalid characters: $, ;, --, or ''';
    END IF;
    RETURN prefix || '_' || queue_name;
END
$$;

CREATE OR REPLACE FUNCTION pgmq._create(name text, unlogged boolean, partitioned boolean)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pgmq.validate_queue_name(name);
    PERFORM pgmq.format_table_name(name, 'q');
    PERFORM pgmq.acquire_queue_lock(name);
    IF EXISTS (SELECT FROM pgmq.meta WHERE queue_name = name) THEN
        RETURN;
    END IF;
    INSERT INTO pgmq.meta (queue_name, is_partitioned, is_unlogged)
    VALUES (name, partitioned, unlogged);
    -- What Windrow's workers end is in the archive too.
    INSERT INTO windrow.queue AS former (name, is_paused, completed_seconds, failed_seconds)
    VALUES (_create.name, false, -1, -1)
        ON CONFLICT ON CONSTRAINT queue_pkey DO UPDATE
       SET completed_seconds = coalesce(former.completed_seconds, -1),
           failed_seconds = coalesce(former.failed_seconds, -1);
    PERFORM pgmq._relate(name);
END
$$;
-- Queues of earlier versions kept what failed for a week.
UPDATE windrow.queue SET failed_seconds = completed_seconds
 WHERE failed_seconds IS NULL AND completed_seconds IS NOT NULL
   AND name IN (SELECT queue_name FROM pgmq.meta);

CREATE OR REPLACE FUNCTION pgmq.create(queue_name text) RETURNS void LANGUAGE sql AS $$
    SELECT pgmq._create(queue_name, false, false)
$$;
CREATE OR REPLACE FUNCTION pgmq.create_non_partitioned(queue_name text) RETURNS void
LANGUAGE sql AS $$
    SELECT pgmq._create(queue_name, false, false)
$$;
CREATE OR REPLACE FUNCTION pgmq.create_unlogged(queue_name text) RETURNS void LANGUAGE sql AS $$
    SELECT pgmq._create(queue_name, true, false)
$$;

-- How long the archive is kept. A number of messages, as PGMQ also allows, is not to be had.
CREATE OR REPLACE FUNCTION pgmq._retain(name text, retention_interval text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF retention_interval ~ '^\s*\d+\s*$' THEN
        RAISE NOTICE 'the archive of % is kept for ever: a retention of % messages is not to be had',
            name, retention_interval;
    ELSE
        UPDATE windrow.queue
           SET (completed_seconds, failed_seconds) = (
                   SELECT kept, kept
                     FROM ceil(date_part('epoch', retention_interval::interval)) AS kept)
         WHERE queue.name = _retain.name;
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION pgmq.create_partitioned(
    queue_name text, partition_interval text DEFAULT '10000',
    retention_interval text DEFAULT '100000', premake integer DEFAULT 4)
RETURNS void LANGUAGE sql AS $$
    SELECT pgmq._create(queue_name, false, true);
    SELECT pgmq._retain(queue_name, retention_interval)
$$;
CREATE OR REPLACE FUNCTION pgmq.convert_archive_partitioned(
    table_name text, partition_interval text DEFAULT '10000',
    retention_interval text DEFAULT '100000', leading_partition integer DEFAULT 10)
RETURNS void LANGUAGE sql AS $$
    SELECT pgmq._require_queue(table_name);
    SELECT pgmq._retain(table_name, retention_interval)
$$;
CREATE OR REPLACE FUNCTION pgmq.detach_archive(queue_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING 'detach_archive(queue_name) is deprecated and does nothing';
END
$$;

-- With its messages and its archive.
CREATE OR REPLACE FUNCTION pgmq.drop_queue(queue_name text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    gone_name CONSTANT text := queue_name;
    archived uuid[];
BEGIN
    PERFORM pgmq.acquire_queue_lock(gone_name);
    IF NOT EXISTS (SELECT FROM pgmq.meta WHERE meta.queue_name = gone_name) THEN
        RAISE NOTICE 'pgmq queue `%` does not exist', gone_name;
        RETURN false;
    END IF;
    PERFORM pgmq.purge_queue(gone_name);
    LOOP
        archived := ARRAY(SELECT id FROM windrow.job_finished AS job
                           WHERE job.leaf = 0 AND job.queue = gone_name
                             AND job.state = 'completed'
                             AND job.group_id IS NULL
                           ORDER BY job.id
                           LIMIT 10000);
        EXIT WHEN cardinality(archived) = 0;
        PERFORM windrow_dialect.delete_jobs(ids => archived);
    END LOOP;
    EXECUTE format('DROP VIEW pgmq.%I', 'q_' || gone_name);
    EXECUTE format('DROP VIEW pgmq.%I', 'a_' || gone_name);
    EXECUTE format('DROP SEQUENCE %s', pgmq._counter(gone_name));
    -- What failed can be retried for another week, but has no number any more.
    UPDATE windrow.job_finished AS job
       SET number = NULL,
           expires_at = least(expires_at, statement_timestamp() + interval '7 days')
     WHERE job.state IN ('failed', 'cancelled') AND job.queue = gone_name AND job.number IS NOT NULL;
    DELETE FROM pgmq.meta WHERE meta.queue_name = gone_name;
    UPDATE windrow.queue
       SET completed_seconds = nullif(completed_seconds, -1),
           failed_seconds = nullif(failed_seconds, -1)
     WHERE queue.name = gone_name;
    RETURN true;
END
$$;
CREATE OR REPLACE FUNCTION pgmq.drop_queue(queue_name text, partitioned boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING 'drop_queue(queue_name, partitioned) is deprecated: use drop_queue(queue_name)';
    RETURN pgmq.drop_queue(queue_name);
END
$$;

CREATE OR REPLACE FUNCTION pgmq.list_queues() RETURNS SETOF pgmq.queue_record LANGUAGE sql AS $$
    SELECT queue_name, is_partitioned, is_unlogged, created_at FROM pgmq.meta
$$;

-- Counts are those of the tally and of the queue's sequence; the ages are those of the first and the last message by number. Read
-- only as far as something is due or has run out and was not brought back yet.
CREATE OR REPLACE FUNCTION pgmq.metrics(queue_name text) RETURNS pgmq.metrics_result
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    at CONSTANT timestamptz := clock_timestamp();
    told pgmq.metrics_result;
    rows_read bigint;
BEGIN
    PERFORM pgmq._require_queue(queue_name);
    told.queue_name := queue_name;
    told.scrape_time := at;
    told.total_messages := coalesce(pg_sequence_last_value(pgmq._counter(queue_name)), 0);
    SELECT coalesce(sum(n) FILTER (WHERE state IN ('ready', 'active', 'scheduled', 'held', 'paused')), 0),
           coalesce(sum(n) FILTER (WHERE state = 'ready'), 0),
           count(*)
      INTO told.queue_length, told.queue_visible_length, rows_read
      FROM windrow.tally
     WHERE tally.queue = metrics.queue_name;
    SELECT date_part('epoch', at - created_at)::integer INTO told.oldest_msg_age_sec
      FROM windrow.job_live AS job
     WHERE job.queue = queue_name AND job.number IS NOT NULL AND job.state <> 'waiting'
     ORDER BY job.number LIMIT 1;
    SELECT date_part('epoch', at - created_at)::integer INTO told.newest_msg_age_sec
      FROM windrow.job_live AS job
     WHERE job.queue = queue_name AND job.number IS NOT NULL AND job.state <> 'waiting'
     ORDER BY job.number DESC LIMIT 1;
    told.queue_visible_length := told.queue_visible_length
        + (SELECT count(*)
             FROM (SELECT FROM windrow.job_live AS job
                    WHERE job.state = 'scheduled' AND job.number IS NOT NULL
                      AND job.queue = queue_name
                      AND job.run_at AT TIME ZONE 'UTC' <= at AT TIME ZONE 'UTC'
                    ORDER BY job.run_at AT TIME ZONE 'UTC'
                   OFFSET 0) AS due)
        + (SELECT count(*)
             FROM windrow.lease
            CROSS JOIN LATERAL (
                  SELECT FROM windrow.job_live AS job
                   WHERE job.id = ANY (lease.job_ids) AND job.lease = lease.token
                     AND job.state = 'active' AND job.queue = queue_name
                  OFFSET 0) AS held
            WHERE lease.token >= pgmq._token(queue_name, to_timestamp(0), '\x000000000000')
              AND lease.token <= pgmq._token(queue_name, at, '\xffffffffffff')
              AND lease.expires_at <= at);
    IF rows_read > 5000 AND current_setting('transaction_read_only') = 'off' THEN
        PERFORM pgmq._fold();
    END IF;
    RETURN told;
END
$$;
CREATE OR REPLACE FUNCTION pgmq.metrics_all() RETURNS SETOF pgmq.metrics_result
LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT queue_name FROM pgmq.meta LOOP
        RETURN NEXT pgmq.metrics(name);
    END LOOP;
END
$$;

-- Messages sent from now on fail when they have been read so many times and were never ended; null: no
-- limit. Not a part of PGMQ.
CREATE OR REPLACE FUNCTION pgmq.set_max_reads(queue_name text, max_reads integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF max_reads < 1 THEN
        RAISE EXCEPTION 'max_reads must be at least 1, got: %', max_reads;
    END IF;
    PERFORM pgmq._require_queue(queue_name);
    UPDATE pgmq.meta SET max_reads = set_max_reads.max_reads
     WHERE meta.queue_name = set_max_reads.queue_name;
END
$$;
-- What failed of a queue, and why; `windrow jobs retry` brings it back by its id.
CREATE OR REPLACE FUNCTION pgmq.dead_letters(queue_name text)
RETURNS TABLE (msg_id bigint, job_id uuid, read_ct integer, failed_at timestamptz, error text,
               message jsonb, headers jsonb)
LANGUAGE sql STABLE AS $$
    SELECT job.number, job.id, job.runs, job.finished_at, job.error, stored.payload::jsonb,
           stored.headers::jsonb
      FROM windrow.job_finished AS job
      LEFT JOIN windrow.job_payload AS stored ON stored.id = job.id
     WHERE job.state = 'failed' AND job.queue = dead_letters.queue_name
     ORDER BY job.finished_at
$$;
