-- The functions that run with every commit, in fewer queries: PERFORM plans and runs a query of its
-- own each time, an assignment only evaluates its expression. What they do is as before.

-- Tell those who sleep on a queue, when the transaction commits. The lock is held from here until the
-- commit can be seen: a sleeper that came too late to be seen here finds it taken, and looks again.
CREATE OR REPLACE FUNCTION windrow.wake_sleepers(woken text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    is_locked boolean;
BEGIN
    is_locked := pg_advisory_xact_lock_shared(hashtextextended('windrow.wake', 0)) IS NOT NULL;
    IF EXISTS (SELECT FROM windrow.sleeper
                WHERE until > clock_timestamp()
                  AND (queues IS NULL OR woken = '' OR woken = ANY (queues))) THEN
        PERFORM pg_notify('windrow_work', woken);
    END IF;
END
$$;

-- Every change of a job's state is a row in the tally, and one row is for many jobs: so this is where
-- it is noticed, whatever statement made the change. Those who claim also let held jobs go.
CREATE OR REPLACE FUNCTION windrow.notice_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_locked boolean;
BEGIN
    IF current_setting('windrow.is_folding', true) = 'on' THEN
        RETURN NULL;
    END IF;
    is_locked := pg_advisory_xact_lock_shared(hashtextextended('windrow.wake', 0)) IS NOT NULL;
    IF NEW.state IN ('ready', 'held') THEN
        IF EXISTS (SELECT FROM windrow.sleeper
                    WHERE until > clock_timestamp()
                      AND (queues IS NULL OR NEW.queue = ANY (queues))) THEN
            PERFORM pg_notify('windrow_work', NEW.queue);
        END IF;
        RETURN NULL;
    END IF;
    PERFORM pg_notify('windrow_end', waiter.job_id::text)
       FROM windrow.waiter
      WHERE waiter.queue = NEW.queue
        AND waiter.until > clock_timestamp()
        -- Not as a join, which could be planned as a scan of all live jobs.
        AND (SELECT true FROM windrow.job_live AS job WHERE job.id = waiter.job_id) IS NULL;
    RETURN NULL;
END
$$;

-- The number of a new event. The first of a transaction is preceded by a ticket: a smaller number,
-- locked until the transaction ends. Readers go no further than the smallest ticket that is out, so
-- a late commit is not missed. After the lock, not before: who looks for readers then and finds none
-- is seen by the next one that comes. The upper 16 bits of the lock say that it is a ticket.
CREATE OR REPLACE FUNCTION windrow.next_event() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    is_done boolean;
BEGIN
    IF current_setting('windrow.has_ticket', true) IS DISTINCT FROM 'on' THEN
        is_done := pg_advisory_xact_lock_shared(
                       (30569::bigint << 48) | nextval('windrow.event_seq')) IS NOT NULL;
        is_done := set_config('windrow.has_ticket', 'on', true) IS NOT NULL;
        IF EXISTS (SELECT FROM windrow.event_reader WHERE until > clock_timestamp()) THEN
            PERFORM pg_notify('windrow_event', '');
        END IF;
    END IF;
    RETURN nextval('windrow.event_seq');
END
$$;
