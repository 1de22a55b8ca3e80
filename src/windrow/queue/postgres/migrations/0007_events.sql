-- What happened, as a stream that can be read from any place on. One row tells of all jobs that one
-- statement moved alike; readers take it apart. docs/decisions/0008-events.md says why it is so.
CREATE SEQUENCE windrow.event_seq;

-- Who sleeps until something happens. Unlogged, as windrow.sleeper is.
CREATE UNLOGGED TABLE windrow.event_reader (
    id uuid PRIMARY KEY,
    until timestamptz NOT NULL
);

-- The number of a new event. The first of a transaction is preceded by a ticket: a smaller number,
-- locked until the transaction ends. Readers go no further than the smallest ticket that is out, so
-- a late commit is not missed. After the lock, not before: who looks for readers then and finds none
-- is seen by the next one that comes. The upper 16 bits of the lock say that it is a ticket.
CREATE FUNCTION windrow.next_event() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('windrow.has_ticket', true) IS DISTINCT FROM 'on' THEN
        PERFORM pg_advisory_xact_lock_shared(
                    (30569::bigint << 48) | nextval('windrow.event_seq'));
        PERFORM set_config('windrow.has_ticket', 'on', true);
        PERFORM pg_notify('windrow_event', '')
          WHERE EXISTS (SELECT FROM windrow.event_reader WHERE until > clock_timestamp());
    END IF;
    RETURN nextval('windrow.event_seq');
END
$$;

-- Events lie in a ring of 32 leaves, six hours each, so that old ones go by truncation.
CREATE FUNCTION windrow.event_leaf(at timestamptz) RETURNS smallint LANGUAGE sql STABLE AS $$
    SELECT (1 + floor(date_part('epoch', at) / 21600)::bigint % 32)::smallint
$$;

CREATE TABLE windrow.event (
    seq bigint NOT NULL DEFAULT windrow.next_event(),
    at timestamptz NOT NULL,
    group_id uuid,
    leaf smallint NOT NULL,
    type text NOT NULL,
    state text,
    queue text,
    kind text,
    tenant text,
    job_ids uuid[],
    details json
) PARTITION BY LIST (leaf);
-- Ids do not compress.
ALTER TABLE windrow.event ALTER COLUMN job_ids SET STORAGE EXTERNAL;

DO $$
BEGIN
    FOR leaf IN 1..32 LOOP
        EXECUTE format('CREATE TABLE windrow.event_%s PARTITION OF windrow.event '
                       'FOR VALUES IN (%s)', to_char(leaf, 'FM00'), leaf);
    END LOOP;
END $$;
CREATE INDEX event_seq_order ON windrow.event (seq);

-- Up to which number events may have been removed.
CREATE TABLE windrow.event_floor (
    seq bigint NOT NULL
);
INSERT INTO windrow.event_floor (seq) VALUES (0);

-- Events of a caller's transaction are numbered when it commits: a ticket that is out for as long as
-- the caller likes would keep all readers waiting. Unlogged: no row outlives its transaction.
CREATE UNLOGGED TABLE windrow.event_draft (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    group_id uuid,
    type text NOT NULL,
    state text,
    queue text,
    kind text,
    tenant text,
    job_ids uuid[]
);

CREATE FUNCTION windrow.publish_draft() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO windrow.event (at, leaf, group_id, type, state, queue, kind, tenant, job_ids)
    VALUES (NEW.at, windrow.event_leaf(NEW.at), NEW.group_id, NEW.type, NEW.state, NEW.queue,
            NEW.kind, NEW.tenant, NEW.job_ids);
    DELETE FROM windrow.event_draft WHERE number = NEW.number;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER publish_draft AFTER INSERT ON windrow.event_draft
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION windrow.publish_draft();
