-- The schema pgmq of PGMQ 1.13 on plain Postgres: its functions by their names, arguments and results,
-- its types, and the relations pgmq.q_<queue> and pgmq.a_<queue> as views.
--
--   PGMQ                         Windrow
--   queue x                      queue x; also a row of pgmq.meta. Names are taken as they are: Foo is not foo
--   message                      a job of the kind "pgmq" (or of any kind, if Windrow enqueued it)
--   msg_id                       number: 1, 2, 3 … in each queue, by a sequence that comes with it; also
--                                given to what Windrow enqueues there, by a trigger
--   message, headers             payload, headers (an object)
--   enqueued_at                  created_at
--   read_ct, last_read_at        runs, started_at
--   vt of a message not read     run_at; later than now: scheduled, else ready
--   vt of a message that is      when its lease runs out; read, pop and the grouped reads bring back
--   read                         what is due and what has run out, so no worker of Windrow is needed
--   archive                      completed, and kept for ever; a_<queue> shows completed and failed jobs
--   delete, pop, purge           deleted
--   vt ran out                   a crash; as many as there may be, unless pgmq.set_max_reads() says how
--                                many: then failed, which a_<queue> and pgmq.dead_letters() show
--
-- Order is that of Windrow: by priority, then by msg_id; messages sent here all have the usual priority.
-- A queue, group or job that is paused in Windrow is not read. Unlogged and partitioned queues are
-- remembered as such; their messages are stored like all others.

DO $$
BEGIN
    IF to_regnamespace('pgmq') IS NOT NULL
       AND NOT EXISTS (SELECT FROM windrow.dialect WHERE name = 'pgmq') THEN
        RAISE duplicate_schema USING MESSAGE = 'there is a schema pgmq already, which is not Windrow''s',
            HINT = 'Rename it, or drop the extension; the guide about coming from PGMQ says how to move.';
    END IF;
END
$$;
CREATE SCHEMA IF NOT EXISTS pgmq;

CREATE TABLE IF NOT EXISTS pgmq.meta (
    queue_name varchar UNIQUE NOT NULL,
    is_partitioned boolean NOT NULL,
    is_unlogged boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    max_reads integer
);
-- Unlogged: after a crash of the server, listeners come back and ask for notifications anew.
CREATE UNLOGGED TABLE IF NOT EXISTS pgmq.notify_insert_throttle (
    queue_name varchar UNIQUE NOT NULL REFERENCES pgmq.meta (queue_name) ON DELETE CASCADE,
    throttle_interval_ms integer NOT NULL DEFAULT 0,
    last_notified_at timestamptz NOT NULL DEFAULT to_timestamp(0)
);
CREATE TABLE IF NOT EXISTS pgmq.topic_bindings (
    pattern text NOT NULL,
    queue_name text NOT NULL REFERENCES pgmq.meta (queue_name) ON DELETE CASCADE,
    bound_at timestamptz NOT NULL DEFAULT now(),
    -- `*` is one word, `#` is any text; dots are themselves.
    compiled_regex text GENERATED ALWAYS AS (
        '^' || replace(replace(replace(pattern, '.', '\.'), '*', '[^.]+'), '#', '.*') || '$') STORED,
    UNIQUE (pattern, queue_name)
);

DO $$
BEGIN
    IF to_regtype('pgmq.message_record') IS NULL THEN
        CREATE TYPE pgmq.message_record AS (
            msg_id bigint, read_ct integer, enqueued_at timestamptz, last_read_at timestamptz,
            vt timestamptz, message jsonb, headers jsonb);
        CREATE TYPE pgmq.queue_record AS (
            queue_name varchar, is_partitioned boolean, is_unlogged boolean,
            created_at timestamptz);
        CREATE TYPE pgmq.metrics_result AS (
            queue_name text, queue_length bigint, newest_msg_age_sec integer,
            oldest_msg_age_sec integer, total_messages bigint, scrape_time timestamptz,
            queue_visible_length bigint, default_partition_length bigint);
    END IF;
END
$$;

-- Messages by their number; jobs of other queues are in none of these. None leaves the planner a choice: a
-- read cannot go by numbers, among which messages that are being read stand before those that are visible,
-- because it does not ask for one; and what is due is not looked for by run_at itself, which would fit
-- the index over all queues.
DROP INDEX IF EXISTS windrow.pgmq_number, windrow.pgmq_archive, windrow.pgmq_due,
    windrow.pgmq_kept;  -- of earlier versions
CREATE INDEX IF NOT EXISTS pgmq_live ON windrow.job_live (queue, number) WHERE number IS NOT NULL;
CREATE INDEX IF NOT EXISTS pgmq_archived ON windrow.job_finished_kept (queue, number)
    WHERE number IS NOT NULL AND state IN ('completed', 'failed');
CREATE INDEX IF NOT EXISTS pgmq_scheduled ON windrow.job_live (queue, (run_at AT TIME ZONE 'UTC'))
    WHERE state = 'scheduled' AND number IS NOT NULL;

-- The sequence that numbers the messages of a queue. In the schema of the jobs, because whoever enqueues
-- must be able to see whether there is one. The names of queues are short enough for a name of 63 bytes.
CREATE OR REPLACE FUNCTION pgmq._counter(name text) RETURNS regclass LANGUAGE sql STABLE AS $$
    SELECT to_regclass('windrow.' || quote_ident('#' || name))
$$;

-- Numbers for what Windrow enqueues into a queue of PGMQ, for whoever does. The condition is all that
-- other queues pay, about a microsecond a job.
CREATE OR REPLACE FUNCTION pgmq._number_job() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.number := nextval(to_regclass('windrow.' || quote_ident('#' || NEW.queue)));
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER pgmq_number BEFORE INSERT ON windrow.job_live FOR EACH ROW
    WHEN (NEW.number IS NULL AND to_regclass('windrow.' || quote_ident('#' || NEW.queue)) IS NOT NULL)
    EXECUTE FUNCTION pgmq._number_job();
-- Those that are copied in from elsewhere.
CREATE OR REPLACE TRIGGER pgmq_number BEFORE INSERT ON windrow.job_finished_kept FOR EACH ROW
    WHEN (NEW.number IS NULL AND NEW.state IN ('completed', 'failed')
          AND to_regclass('windrow.' || quote_ident('#' || NEW.queue)) IS NOT NULL)
    EXECUTE FUNCTION pgmq._number_job();
