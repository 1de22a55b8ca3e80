-- pgmq.q_<queue> and pgmq.a_<queue>. What is written to them goes the way of the functions; an UPDATE or
-- DELETE of a row that has changed since it was seen does nothing. A rescue is no change: it makes a
-- message visible, which it was already.

CREATE OR REPLACE FUNCTION pgmq._insert_message() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wanted CONSTANT bigint := NEW.msg_id;
BEGIN
    SELECT sent INTO NEW.msg_id
      FROM pgmq._insert_messages(TG_ARGV[0], ARRAY[NEW.message], ARRAY[NEW.headers], NEW.vt) AS sent;
    IF wanted <> NEW.msg_id THEN
        PERFORM pgmq._renumber(TG_ARGV[0], NEW.msg_id, wanted);
        NEW.msg_id := wanted;
    END IF;
    IF NEW.enqueued_at IS NOT NULL OR NEW.read_ct IS NOT NULL OR NEW.last_read_at IS NOT NULL THEN
        UPDATE windrow.job_live AS job
           SET created_at = coalesce(NEW.enqueued_at, job.created_at),
               runs = coalesce(NEW.read_ct, job.runs),
               started_at = NEW.last_read_at
         WHERE job.queue = TG_ARGV[0] AND job.number = NEW.msg_id;
    END IF;
    SELECT shown.read_ct, shown.enqueued_at, shown.last_read_at, shown.vt
      INTO NEW.read_ct, NEW.enqueued_at, NEW.last_read_at, NEW.vt
      FROM pgmq._show(pgmq._lock(TG_ARGV[0], ARRAY[NEW.msg_id])) AS shown;
    RETURN NEW;
END
$$;

-- A new message gets the number that it came with, if no message has had that or a later one: for those
-- who move a queue here. Nobody sends to the queue meanwhile.
CREATE OR REPLACE FUNCTION pgmq._renumber(name text, given bigint, wanted bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    counter CONSTANT regclass := pgmq._counter(name);
BEGIN
    IF wanted > given AND windrow.session_access() = 'all' THEN
        EXECUTE format('ALTER SEQUENCE %s NO CYCLE', counter);  -- changes nothing, but locks it
    END IF;
    IF wanted < given OR windrow.session_access() <> 'all'
       OR pg_sequence_last_value(counter) > given THEN
        RAISE unique_violation USING MESSAGE = format(
            'message %s of queue %s cannot be: numbers up to %s have been given', wanted, name, given);
    END IF;
    EXECUTE format('ALTER SEQUENCE %s RESTART WITH %s', counter, wanted + 1);
    UPDATE windrow.job_live AS job SET number = wanted
     WHERE job.queue = name AND job.number = given;
END
$$;

-- A later vt and a higher read_ct together are a read; another vt alone is set_vt().
CREATE OR REPLACE FUNCTION pgmq._update_message() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids CONSTANT uuid[] := pgmq._lock(TG_ARGV[0], ARRAY[OLD.msg_id]);
    seen pgmq.message_record;
BEGIN
    IF NEW.msg_id IS DISTINCT FROM OLD.msg_id THEN
        RAISE feature_not_supported USING MESSAGE = 'the msg_id of a message cannot be changed';
    END IF;
    SELECT * INTO seen FROM pgmq._show(ids);
    IF OLD.vt <= statement_timestamp() AND seen.vt <= clock_timestamp() THEN
        seen.vt := OLD.vt;
    END IF;
    IF seen IS DISTINCT FROM ROW (OLD.msg_id, OLD.read_ct, OLD.enqueued_at, OLD.last_read_at, OLD.vt,
                                  OLD.message, OLD.headers)::pgmq.message_record THEN
        RETURN NULL;
    END IF;
    IF NEW.vt IS DISTINCT FROM OLD.vt THEN
        IF NEW.read_ct > OLD.read_ct AND NEW.vt > clock_timestamp() THEN
            -- Does nothing to one that somebody has.
            PERFORM windrow_dialect.claim_job(ids[1], 'pgmq', 0);
        END IF;
        PERFORM pgmq._set_vt(TG_ARGV[0], ids, NEW.vt);
    END IF;
    UPDATE windrow.job_live
       SET runs = NEW.read_ct, created_at = NEW.enqueued_at, started_at = NEW.last_read_at
     WHERE id = ids[1];
    UPDATE windrow.job_payload
       SET payload = coalesce(NEW.message::json, 'null'), headers = NEW.headers::json
     WHERE id = ids[1]
       AND (NEW.message IS DISTINCT FROM OLD.message OR NEW.headers IS DISTINCT FROM OLD.headers);
    SELECT shown.vt INTO NEW.vt FROM pgmq._show(ids) AS shown;
    RETURN NEW;
END
$$;

CREATE OR REPLACE FUNCTION pgmq._delete_message() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids CONSTANT uuid[] := pgmq._lock(TG_ARGV[0], ARRAY[OLD.msg_id]);
    seen pgmq.message_record;
BEGIN
    SELECT * INTO seen FROM pgmq._show(ids);
    IF OLD.vt <= statement_timestamp() AND seen.vt <= clock_timestamp() THEN
        seen.vt := OLD.vt;
    END IF;
    IF seen IS DISTINCT FROM ROW (OLD.msg_id, OLD.read_ct, OLD.enqueued_at, OLD.last_read_at, OLD.vt,
                                  OLD.message, OLD.headers)::pgmq.message_record THEN
        RETURN NULL;
    END IF;
    PERFORM pgmq._delete(TG_ARGV[0], ids);
    RETURN OLD;
END
$$;

CREATE OR REPLACE FUNCTION pgmq._delete_archived() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    found_id uuid;
BEGIN
    SELECT id INTO found_id
      FROM windrow.job_finished AS job
     WHERE job.leaf = 0 AND job.queue = TG_ARGV[0] AND job.number = OLD.msg_id
       AND job.state IN ('completed', 'failed')
       FOR UPDATE;
    IF found_id IS NULL OR NOT windrow_dialect.delete_job(found_id) THEN
        RETURN NULL;
    END IF;
    RETURN OLD;
END
$$;

-- Rights to what is kept here, for the roles of row-level security, where there are any; to the relations
-- of a new queue they come with the next `windrow db rls enable`.
CREATE OR REPLACE FUNCTION pgmq._grant() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF to_regrole('windrow_gate') IS NULL OR to_regrole('windrow_worker') IS NULL THEN
        RETURN;
    END IF;
    GRANT USAGE ON SCHEMA pgmq TO windrow_worker, windrow_gate;
    GRANT SELECT ON pgmq.meta, pgmq.topic_bindings TO windrow_worker, windrow_gate;
    GRANT SELECT, INSERT, UPDATE, DELETE ON pgmq.notify_insert_throttle TO windrow_worker;
END
$$;

-- Make the sequence of a queue, where it is missing, and number what the queue holds already: the archive
-- first, then what is live. One that Windrow enqueues at this very moment gets its number when it is read.
CREATE OR REPLACE FUNCTION pgmq._count(name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    last CONSTANT bigint := greatest(
        (SELECT max(job.number) FROM windrow.job_live AS job
          WHERE job.queue = name AND job.number IS NOT NULL),
        (SELECT max(job.number) FROM windrow.job_finished_kept AS job
          WHERE job.queue = name AND job.number IS NOT NULL AND job.state IN ('completed', 'failed')), 0);
    next bigint := last;
    sort text;
    changed bigint;
BEGIN
    IF pgmq._counter(name) IS NOT NULL THEN
        RETURN;
    END IF;
    FOREACH sort IN ARRAY '{job_finished_kept,job_live}'::text[] LOOP
        EXECUTE format('WITH line AS (SELECT id, row_number() OVER (ORDER BY seq) AS place FROM windrow.%1$I '
                       'WHERE queue = $1 AND number IS NULL AND state <> ALL (''{failed,cancelled}'')) '
                       'UPDATE windrow.%1$I AS job SET number = $2 + line.place FROM line '
                       'WHERE job.id = line.id', sort)
            USING name, next;
        GET DIAGNOSTICS changed = ROW_COUNT;
        next := next + changed;
    END LOOP;
    EXECUTE format('CREATE SEQUENCE windrow.%I START %s', '#' || name, next + 1);
    IF to_regrole('windrow_gate') IS NOT NULL AND to_regrole('windrow_worker') IS NOT NULL THEN
        EXECUTE format('GRANT SELECT, USAGE ON SEQUENCE %s TO windrow_worker, windrow_gate',
                       pgmq._counter(name));
    END IF;
END
$$;

-- Make or bring up to date the relations of a queue.
CREATE OR REPLACE FUNCTION pgmq._relate(name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    verb text;
BEGIN
    PERFORM pgmq._count(name);
    EXECUTE format($view$
        CREATE OR REPLACE VIEW pgmq.%I WITH (security_invoker = true) AS
        SELECT job.number AS msg_id, job.runs AS read_ct, job.created_at AS enqueued_at,
               job.started_at AS last_read_at,
               CASE WHEN job.state = 'active'
                    THEN (SELECT lease.expires_at FROM windrow.lease
                           WHERE lease.token = job.lease)
                    ELSE job.run_at END AS vt,
               (SELECT stored.payload::jsonb FROM windrow.job_payload AS stored
                 WHERE stored.id = job.id) AS message,
               (SELECT stored.headers::jsonb FROM windrow.job_payload AS stored
                 WHERE stored.id = job.id) AS headers
          FROM windrow.job_live AS job
         WHERE job.queue = %L AND job.number IS NOT NULL AND job.state <> 'waiting'$view$, 'q_' || name, name);
    EXECUTE format($view$
        CREATE OR REPLACE VIEW pgmq.%I WITH (security_invoker = true) AS
        SELECT job.number AS msg_id, job.runs AS read_ct, job.created_at AS enqueued_at,
               job.started_at AS last_read_at, job.finished_at AS archived_at, job.run_at AS vt,
               (SELECT stored.payload::jsonb FROM windrow.job_payload AS stored
                 WHERE stored.id = job.id) AS message,
               (SELECT stored.headers::jsonb FROM windrow.job_payload AS stored
                 WHERE stored.id = job.id) AS headers
          FROM windrow.job_finished AS job
         WHERE job.leaf = 0 AND job.queue = %L AND job.number IS NOT NULL
           AND job.state IN ('completed', 'failed')$view$, 'a_' || name, name);
    FOREACH verb IN ARRAY '{insert,update,delete}'::text[] LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER %1$s_message INSTEAD OF %1$s ON pgmq.%2$I '
                       'FOR EACH ROW EXECUTE FUNCTION pgmq._%1$s_message(%3$L)',
                       verb, 'q_' || name, name);
    END LOOP;
    EXECUTE format('CREATE OR REPLACE TRIGGER delete_archived INSTEAD OF DELETE ON pgmq.%I '
                   'FOR EACH ROW EXECUTE FUNCTION pgmq._delete_archived(%L)', 'a_' || name, name);
END
$$;
SELECT pgmq._relate(queue_name) FROM pgmq.meta;
SELECT pgmq._grant();
DROP TABLE IF EXISTS pgmq.gone;  -- of earlier versions
