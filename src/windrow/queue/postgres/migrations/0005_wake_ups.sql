-- Who sleeps until there is work, and who until a job ends. Only for them is anything sent. Unlogged:
-- after a crash of the server nobody sleeps any more, everybody connects anew and looks.
CREATE UNLOGGED TABLE windrow.sleeper (
    id uuid PRIMARY KEY,
    queues text[],
    until timestamptz NOT NULL
);
CREATE UNLOGGED TABLE windrow.waiter (
    queue text NOT NULL,
    job_id uuid NOT NULL,
    id uuid NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (queue, job_id, id)
);
CREATE INDEX waiter_id ON windrow.waiter (id);

-- Tell those who sleep on a queue, when the transaction commits. The lock is held from here until the
-- commit can be seen: a sleeper that came too late to be seen here finds it taken, and looks again.
CREATE FUNCTION windrow.wake_sleepers(woken text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('windrow.wake', 0));
    PERFORM pg_notify('windrow_work', woken)
      WHERE EXISTS (SELECT FROM windrow.sleeper
                     WHERE until > clock_timestamp()
                       AND (queues IS NULL OR woken = '' OR woken = ANY (queues)));
END
$$;

-- Every change of a job's state is a row in the tally, and one row is for many jobs: so this is where
-- it is noticed, whatever statement made the change. Those who claim also let held jobs go.
CREATE FUNCTION windrow.notice_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('windrow.is_folding', true) = 'on' THEN
        RETURN NULL;
    END IF;
    IF NEW.state IN ('ready', 'held') THEN
        PERFORM windrow.wake_sleepers(NEW.queue);
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('windrow.wake', 0));
    PERFORM pg_notify('windrow_end', waiter.job_id::text)
       FROM windrow.waiter
      WHERE waiter.queue = NEW.queue
        AND waiter.until > clock_timestamp()
        -- Not as a join, which could be planned as a scan of all live jobs.
        AND (SELECT true FROM windrow.job_live AS job WHERE job.id = waiter.job_id) IS NULL;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER notice_change AFTER INSERT ON windrow.tally
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.n > 0 AND NEW.state NOT IN ('active', 'scheduled', 'paused', 'waiting'))
    EXECUTE FUNCTION windrow.notice_change();

CREATE FUNCTION windrow.notice_queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM windrow.wake_sleepers(NEW.name);
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER notice_queue AFTER UPDATE ON windrow.queue
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.is_paused AND NOT NEW.is_paused)
    EXECUTE FUNCTION windrow.notice_queue();

-- The members of a group may lie in any queue.
CREATE FUNCTION windrow.notice_group() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM windrow.wake_sleepers('');
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER notice_group AFTER UPDATE ON windrow.job_group
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.is_paused AND NOT NEW.is_paused)
    EXECUTE FUNCTION windrow.notice_group();
