-- New jobs tell those who sleep by the statement that inserts them, not by a trigger at its commit: a
-- trigger that is deferred, and a second look into the tables of those who sleep, took a seventh of an
-- enqueue. What is counted that way lies in a table of its own, which no trigger watches. It belongs to
-- windrow.tally: whoever reads or folds that one, an older Windrow too, reads and folds both.

-- Counts of jobs whose statement has told those who sleep.
CREATE TABLE windrow.tally_told () INHERITS (windrow.tally);

-- The number of an event about jobs that came into a queue, and can be claimed there if it is given:
-- as next_event, and those who sleep on the queue are told when the transaction commits. Both locks come before the
-- look, whose snapshot is its own: a sleeper that came too late to be seen finds the first one taken,
-- as with notice_change, and a reader of events the second one.
CREATE FUNCTION windrow.next_event(woken text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    is_done boolean;
    is_slept_on boolean;
    is_read boolean;
BEGIN
    is_done := pg_advisory_xact_lock_shared(hashtextextended('windrow.wake', 0)) IS NOT NULL;
    IF current_setting('windrow.has_ticket', true) IS DISTINCT FROM 'on' THEN
        is_done := pg_advisory_xact_lock_shared(
                       (30569::bigint << 48) | nextval('windrow.event_seq')) IS NOT NULL;
        is_done := set_config('windrow.has_ticket', 'on', true) IS NOT NULL;
    END IF;
    SELECT EXISTS (SELECT FROM windrow.sleeper
                    WHERE until > clock_timestamp()
                      AND (queues IS NULL OR woken = ANY (queues))),
           EXISTS (SELECT FROM windrow.event_reader WHERE until > clock_timestamp())
      INTO is_slept_on, is_read;
    IF is_slept_on AND woken IS NOT NULL THEN
        PERFORM pg_notify('windrow_work', woken);
    END IF;
    IF is_read THEN
        PERFORM pg_notify('windrow_event', '');
    END IF;
    RETURN nextval('windrow.event_seq');
END
$$;

-- Where PGMQ's schema lies over the queue, its listeners hear of what Windrow enqueues.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_trigger
                WHERE tgrelid = 'windrow.tally'::regclass AND tgname = 'pgmq_notify') THEN
        CREATE CONSTRAINT TRIGGER pgmq_notify AFTER INSERT ON windrow.tally_told
            DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW WHEN (NEW.n > 0 AND NEW.state = 'ready')
            EXECUTE FUNCTION pgmq.notify_queue_listeners();
    END IF;
END $$;
