-- What the migrations add up to: the tables as they are now, for reading. A test applies this file
-- to an empty database and finds the same tables as after all migrations.
--
-- By topic: jobs, leases and workers, groups, queues, limits, schedules, wake-ups, events, transfer
-- between databases, dialects, tenancy, catalog, accounts.
--
-- `tenant` is null for jobs, groups and pages without a tenant, and '' in the other tables of the
-- catalog and in those of the accounts. Under row-level security a tenant's role reads its own rows
-- and writes through functions (docs/decisions/0010-tenancy.md).

CREATE SCHEMA windrow;


-- # Migrations

-- The migrations that were applied to this database.
CREATE TABLE windrow.migration (
    version integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);


-- # Jobs

-- A job is one narrow row of windrow.job: in the partition job_live while it can still change, in
-- job_finished once it is final. The payload lies beside it in a table that is only inserted into;
-- the result goes into the finished row, which is written once anyway. A row leaves job_live by
-- DELETE … RETURNING and INSERT in one statement, never by an UPDATE of the partition key, which
-- would fail the statements waiting for the row.
--
-- The columns that a claim changes come late: a new version of the row on the same page then logs
-- only its tail. docs/decisions/0001-storage-shape.md has the figures.

-- The order of jobs within a queue and priority.
CREATE SEQUENCE windrow.job_seq;

-- Every job: its queue and kind, its state, when it runs, the lease that holds it, its result.
CREATE TABLE windrow.job (
    seq bigint NOT NULL DEFAULT nextval('windrow.job_seq'),
    run_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    finished_at timestamptz,
    lease_seconds bigint,
    retention_seconds bigint,
    id uuid NOT NULL,
    group_id uuid,
    root_of uuid,
    priority integer NOT NULL,
    max_attempts integer NOT NULL,
    max_crashes integer NOT NULL,
    is_follower boolean NOT NULL DEFAULT false,
    is_cleaned boolean NOT NULL DEFAULT false,
    queue text NOT NULL,
    kind text NOT NULL,
    tenant text,
    unique_key text,
    attempts integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    runs integer NOT NULL DEFAULT 0,
    started_at timestamptz,
    lease uuid,
    stop_as text,
    state text NOT NULL,
    error text,
    result json,
    result_hash bytea,
    limit_keys text[],  -- the first one is the job's fairness key
    max_hold_seconds bigint,
    leaf smallint,  -- of a finished job: 1 to 28 by the hour of its expiry, 0 if kept for longer
    number bigint,  -- within its queue, if a dialect counts by queue: docs/decisions/0013-numbers.md
    is_placed boolean NOT NULL DEFAULT false  -- held: was promoted before and gave its place back
) PARTITION BY LIST (state);

-- Jobs that have not ended. Claims read only this partition.
CREATE TABLE windrow.job_live PARTITION OF windrow.job
    FOR VALUES IN ('scheduled', 'held', 'paused', 'ready', 'active', 'waiting');

-- Jobs that have ended.
CREATE TABLE windrow.job_finished PARTITION OF windrow.job
    FOR VALUES IN ('completed', 'failed', 'cancelled')
    PARTITION BY LIST (leaf);

-- Finished jobs that are removed row by row: those kept for more than a day, with their group, or
-- for ever. The others lie in a ring of 28 partitions, one for each hour of expiry, reused every 28
-- hours: a partition is truncated when its hour is over, and none is ever created, attached or
-- dropped. docs/decisions/0005-retention.md says why.
CREATE TABLE windrow.job_finished_kept PARTITION OF windrow.job_finished FOR VALUES IN (0, NULL);

DO $$
BEGIN
    FOR leaf IN 1..28 LOOP
        EXECUTE format('CREATE TABLE windrow.job_finished_%s PARTITION OF windrow.job_finished '
                       'FOR VALUES IN (%s)', to_char(leaf, 'FM00'), leaf);
    END LOOP;
END $$;

-- Dialects let others write times. Python reads the years 1 to 9999, and one row outside them would
-- fail every claim that returns it. NOT VALID keeps the planner from considering the constraint.
ALTER TABLE windrow.job ADD CONSTRAINT job_times CHECK (
    created_at BETWEEN '0001-01-02Z' AND '9999-12-31 23:59:59.999999Z'
    AND run_at BETWEEN '0001-01-02Z' AND '9999-12-31 23:59:59.999999Z'
    AND started_at BETWEEN '0001-01-02Z' AND '9999-12-31 23:59:59.999999Z'
    AND finished_at BETWEEN '0001-01-02Z' AND '9999-12-31 23:59:59.999999Z'
    AND (expires_at BETWEEN '0001-01-02Z' AND '9999-12-31 23:59:59.999999Z'
         OR expires_at = 'infinity')) NOT VALID;

ALTER TABLE windrow.job_live ADD CONSTRAINT job_live_pkey PRIMARY KEY (id);
CREATE INDEX job_live_claim ON windrow.job_live (queue, priority DESC, seq) WHERE state = 'ready';
CREATE INDEX job_live_due ON windrow.job_live (run_at) WHERE state = 'scheduled';
CREATE UNIQUE INDEX job_live_unique ON windrow.job_live (unique_key, tenant, is_follower)
    NULLS NOT DISTINCT WHERE unique_key IS NOT NULL;
CREATE INDEX job_live_follower ON windrow.job_live (unique_key) WHERE is_follower;
CREATE INDEX job_live_group ON windrow.job_live (group_id, id) WHERE group_id IS NOT NULL;
CREATE INDEX job_live_tenant ON windrow.job_live (tenant, id) WHERE tenant IS NOT NULL;
CREATE INDEX job_live_blob ON windrow.job_live (result_hash) WHERE result_hash IS NOT NULL;
CREATE INDEX job_live_set_aside ON windrow.job_live (state, id)
    WHERE state IN ('held', 'paused', 'waiting');
CREATE INDEX job_live_hold ON windrow.job_live (max_hold_seconds, run_at)
    WHERE state = 'held' AND NOT is_follower AND max_hold_seconds IS NOT NULL;
-- Promotion: the held jobs of a fairness key in order. By lane (queue, kind, tenant) as well, so
-- that it can skip all jobs of a lane that no worker serves.
CREATE INDEX job_live_held
    ON windrow.job_live ((limit_keys[1]), priority DESC, is_placed DESC, seq)
    WHERE state = 'held' AND NOT is_follower;
CREATE INDEX job_live_held_lane
    ON windrow.job_live ((limit_keys[1]), queue, kind, (coalesce(tenant, '')), priority DESC,
                         is_placed DESC, seq)
    WHERE state = 'held' AND NOT is_follower;

CREATE INDEX job_finished_id ON windrow.job_finished (id);
CREATE INDEX job_finished_group ON windrow.job_finished (group_id, id) WHERE group_id IS NOT NULL;
CREATE INDEX job_finished_tenant ON windrow.job_finished (tenant, id) WHERE tenant IS NOT NULL;
CREATE INDEX job_finished_unique ON windrow.job_finished (unique_key, id)
    WHERE unique_key IS NOT NULL;
CREATE INDEX job_finished_blob ON windrow.job_finished (result_hash)
    WHERE result_hash IS NOT NULL;
CREATE INDEX job_finished_unsuccessful ON windrow.job_finished (state, id)
    WHERE state <> 'completed';
CREATE INDEX job_finished_kept_expiry ON windrow.job_finished_kept (expires_at)
    WHERE expires_at < 'infinity';
-- The members of a group in the order in which they ended, as crawls are read.
CREATE INDEX job_finished_ended ON windrow.job_finished (group_id, finished_at, id)
    WHERE group_id IS NOT NULL;

-- Payload, headers and tags of jobs. json, not jsonb: the payload is returned exactly as it was
-- written, numbers included.
CREATE TABLE windrow.job_payload (
    id uuid PRIMARY KEY,
    payload json NOT NULL,
    headers json,
    tags text[]
);

-- Results too large for a row, by their SHA-256 (job.result_hash).
CREATE TABLE windrow.blob (
    hash bytea PRIMARY KEY,
    body bytea NOT NULL
);

-- Errors of the runs of a job, oldest first.
CREATE TABLE windrow.job_error (
    place bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL,
    job_id uuid NOT NULL,
    reason text NOT NULL,
    type text,
    message text NOT NULL,
    traceback text
);
CREATE INDEX job_error_job ON windrow.job_error (job_id, place);
ALTER TABLE windrow.job_error ADD CONSTRAINT job_error_times CHECK (
    at BETWEEN '0001-01-02Z' AND '9999-12-31 23:59:59.999999Z') NOT VALID;

-- Results of the completed steps of a job, which a later run does not repeat.
CREATE TABLE windrow.job_step (
    at timestamptz NOT NULL,
    job_id uuid NOT NULL,
    name text NOT NULL,
    result json NOT NULL,
    PRIMARY KEY (job_id, name)
);

-- The progress of a job, as its run reported it last.
CREATE TABLE windrow.job_progress (
    id uuid PRIMARY KEY,
    updated_at timestamptz NOT NULL,
    percent integer NOT NULL,
    message text,
    counters jsonb NOT NULL
) WITH (fillfactor = 50);


-- # Leases and workers

-- Leases: one row per claim and lease length. The expiry has no index, so that a renewal stays on
-- its page.
CREATE TABLE windrow.lease (
    token uuid PRIMARY KEY,
    claimed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    seconds bigint NOT NULL,
    worker text NOT NULL,
    job_ids uuid[] NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE windrow.lease ADD CONSTRAINT lease_times CHECK (
    claimed_at BETWEEN '0001-01-02Z' AND '9999-12-31 23:59:59.999999Z'
    AND expires_at BETWEEN '0001-01-02Z' AND '9999-12-31 23:59:59.999999Z') NOT VALID;

-- The workers that are alive, and the queues and kinds they serve. `trouble` is what keeps failing in
-- a worker, as it reports it. Unlogged: every heartbeat writes the row again.
CREATE UNLOGGED TABLE windrow.worker (
    id uuid PRIMARY KEY,
    started_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    pid integer NOT NULL,
    concurrency integer NOT NULL,
    running integer NOT NULL,
    name text NOT NULL,
    host text NOT NULL,
    version text NOT NULL,
    queues text[],
    kinds text[],
    trouble text
) WITH (fillfactor = 50);

-- Who holds a role that one process at a time may have, and until when.
CREATE TABLE windrow.leader (
    role text PRIMARY KEY,
    holder text NOT NULL,
    expires_at timestamptz NOT NULL
);


-- # Groups

-- Groups: how many members ended in which state, and the job that runs after the last one.
CREATE TABLE windrow.job_group (
    id uuid PRIMARY KEY,
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    retention_seconds bigint,
    root uuid,
    members bigint NOT NULL DEFAULT 0,
    pending bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    is_paused boolean NOT NULL DEFAULT false,
    is_open boolean NOT NULL,
    is_cancelled boolean NOT NULL DEFAULT false,
    state text NOT NULL DEFAULT 'active',
    tenant text,
    cancel_reason text,
    finish_job json,
    expires_at timestamptz,  -- set while the group has ended and none of its members runs again
    max_jobs bigint  -- the number of members it accepts in all
) WITH (fillfactor = 50);
CREATE INDEX job_group_paused ON windrow.job_group (id) WHERE is_paused;
CREATE INDEX job_group_expiry ON windrow.job_group (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX job_group_active ON windrow.job_group (id) WHERE state = 'active';
ALTER TABLE windrow.job_group ADD CONSTRAINT job_group_times CHECK (
    created_at BETWEEN '0001-01-02Z' AND '9999-12-31 23:59:59.999999Z'
    AND expires_at BETWEEN '0001-01-02Z' AND '9999-12-31 23:59:59.999999Z') NOT VALID;

-- Keys of a group's members. A group accepts each key once, however its job ended. A key is the 16
-- bytes of its hash. Inserted under the lock of the group's row, and deleted with the group.
CREATE TABLE windrow.group_key (
    group_id uuid NOT NULL,
    key bytea NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (group_id, key)
);

-- Notes that jobs leave about their group, such as the pages that a crawl skipped: each once, written
-- in the transaction that completes the job, and deleted with the group. There is no foreign key: it
-- would lock the group's row before the locks that the completion takes.
CREATE TABLE windrow.group_note (
    group_id uuid NOT NULL,
    subject text NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (group_id, subject, text)
);


-- # Queues

-- Settings of queues: paused, maximum depth, retention by final state.
CREATE TABLE windrow.queue (
    name text PRIMARY KEY,
    is_paused boolean NOT NULL,
    max_depth integer,
    on_full text,
    completed_seconds bigint,
    failed_seconds bigint,
    cancelled_seconds bigint
);
CREATE INDEX queue_bounded ON windrow.queue (name) WHERE max_depth IS NOT NULL;

-- Changes to the number of jobs in a queue and state. Their sum is the number.
CREATE TABLE windrow.tally (
    n bigint NOT NULL,
    queue text NOT NULL,
    state text NOT NULL
);

-- Counts written by statements that notify sleeping workers themselves: the trigger on windrow.tally
-- does not fire here. Whatever reads or folds windrow.tally includes these rows.
CREATE TABLE windrow.tally_told () INHERITS (windrow.tally);

-- When expired jobs and groups were last removed.
CREATE TABLE windrow.pruning (
    done_at timestamptz NOT NULL
);


-- # Limits

-- A job with limit keys waits in the state `held` until promotion makes it ready. The number of jobs
-- that use a key is never stored: it is counted from job_live, at the jobs that job_slot names.

-- What a key allows, its rate tokens and its turn among the fairness keys.
CREATE TABLE windrow.job_limit (
    key text PRIMARY KEY,
    active integer,
    per_second double precision,
    burst integer,
    tokens double precision,
    refilled_at timestamptz,
    parked_until timestamptz,
    turn double precision NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX job_limit_parked ON windrow.job_limit (key) WHERE parked_until IS NOT NULL;

-- The jobs that may count under a key, and since when. Written by the promotion of the job; without
-- meaning once the job is neither ready nor active.
CREATE TABLE windrow.job_slot (
    key text NOT NULL,
    job_id uuid NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (key, job_id)
);

-- Lanes (queue, kind, tenant or '') whose ready jobs nobody claimed for some seconds while others
-- waited for their places. Until a worker asks for such jobs, or `until`, jobs of these lanes get only
-- the places that no other job can use.
CREATE TABLE windrow.unserved (
    queue text NOT NULL,
    kind text NOT NULL,
    tenant text NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (queue, kind, tenant)
);


-- # Schedules

-- Schedules: at every slot (next_at, then the one after it) a job like `job` is inserted. json, not
-- jsonb: the payload is returned exactly as it was written.
CREATE TABLE windrow.schedule (
    name text PRIMARY KEY,
    cron text,
    timezone text NOT NULL,
    every_seconds double precision,
    jitter_seconds double precision NOT NULL,
    catch_up text NOT NULL,
    is_paused boolean NOT NULL DEFAULT false,
    next_at timestamptz,
    last_at timestamptz,
    created_at timestamptz NOT NULL,
    job json NOT NULL
);
CREATE INDEX schedule_due ON windrow.schedule (next_at) WHERE NOT is_paused;


-- # Wake-ups

-- A notification is sent only if a session listens for it. Sessions register in sleeper, waiter and
-- event_reader, which are unlogged: after a crash of the server every session connects and registers
-- again. docs/decisions/0006-wake-ups.md says why.

-- Sessions that sleep until a queue has work; `queues` is null for all queues.
CREATE UNLOGGED TABLE windrow.sleeper (
    id uuid PRIMARY KEY,
    queues text[],
    until timestamptz NOT NULL
);

-- Sessions that wait for the end of a job.
CREATE UNLOGGED TABLE windrow.waiter (
    queue text NOT NULL,
    job_id uuid NOT NULL,
    id uuid NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (queue, job_id, id)
);
CREATE INDEX waiter_id ON windrow.waiter (id);

-- Sessions that wait for events.
CREATE UNLOGGED TABLE windrow.event_reader (
    id uuid PRIMARY KEY,
    until timestamptz NOT NULL
);

-- The secret part of the names of the notification channels. Postgres lets every role LISTEN and
-- NOTIFY, so only the owner and workers can read it: no tenant learns the names of others' queues.
CREATE TABLE windrow.channel (
    secret text NOT NULL
);
INSERT INTO windrow.channel VALUES (replace(gen_random_uuid()::text, '-', ''));

-- The full name of a notification channel: work, end or event.
CREATE FUNCTION windrow.channel(what text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT 'windrow_' || what || '_' || secret FROM windrow.channel
$$;

-- These functions run with every commit, so they assign instead of using PERFORM where they can: that
-- plans and runs a query each time, an assignment only evaluates its expression.

-- Notify the sessions that sleep on a queue, when the transaction commits. The lock is held until the
-- commit is visible: a session that registers too late to be found here finds the lock taken, and
-- looks for work again.
CREATE FUNCTION windrow.wake_sleepers(woken text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    is_locked boolean;
BEGIN
    is_locked := pg_advisory_xact_lock_shared(hashtextextended('windrow.wake', 0)) IS NOT NULL;
    IF EXISTS (SELECT FROM windrow.sleeper
                WHERE until > clock_timestamp()
                  AND (queues IS NULL OR woken = '' OR woken = ANY (queues))) THEN
        PERFORM pg_notify(windrow.channel('work'), woken);
    END IF;
END
$$;

-- Notify after a change of jobs' states: sleepers of new work, waiters of ended jobs. Every statement
-- that changes states inserts one row for many jobs into the tally, so a trigger there sees them all.
-- Held jobs count as work: whoever claims also promotes.
CREATE FUNCTION windrow.notice_change() RETURNS trigger LANGUAGE plpgsql AS $$
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
            PERFORM pg_notify(windrow.channel('work'), NEW.queue);
        END IF;
        RETURN NULL;
    END IF;
    PERFORM pg_notify(windrow.channel('end'), waiter.job_id::text)
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

-- Notify after a queue is resumed.
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

-- Notify after a group is resumed: its members may be in any queue.
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


-- # Events

-- Events are a stream that can be read from any position. One row describes all jobs that one
-- statement changed alike; readers split it. docs/decisions/0008-events.md says why.

CREATE SEQUENCE windrow.event_seq;

-- The number of a new event. The first one of a transaction is preceded by a ticket: a smaller
-- number, locked until the transaction ends. Readers stop before the smallest ticket that is held, so
-- they do not miss a late commit. The upper 16 bits of the lock mark it as a ticket. Readers are
-- looked up after the lock is taken: one that registers later sees the ticket.
CREATE FUNCTION windrow.next_event() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    is_done boolean;
BEGIN
    IF current_setting('windrow.has_ticket', true) IS DISTINCT FROM 'on' THEN
        is_done := pg_advisory_xact_lock_shared(
                       (30569::bigint << 48) | nextval('windrow.event_seq')) IS NOT NULL;
        is_done := set_config('windrow.has_ticket', 'on', true) IS NOT NULL;
        IF EXISTS (SELECT FROM windrow.event_reader WHERE until > clock_timestamp()) THEN
            PERFORM pg_notify(windrow.channel('event'), '');
        END IF;
    END IF;
    RETURN nextval('windrow.event_seq');
END
$$;

-- The number of an event about jobs that were added to a queue, which is given if they can be claimed
-- there: as next_event, and it notifies the sleepers of the queue in place of the trigger on the
-- tally. Both locks are taken before sleepers and readers are looked up in a snapshot of its own: one
-- that registers too late to be found sees the lock, as with notice_change, or the ticket.
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
        PERFORM pg_notify(windrow.channel('work'), woken);
    END IF;
    IF is_read THEN
        PERFORM pg_notify(windrow.channel('event'), '');
    END IF;
    RETURN nextval('windrow.event_seq');
END
$$;

-- The partition of an event: a ring of 32, six hours each, so that old events are truncated.
CREATE FUNCTION windrow.event_leaf(at timestamptz) RETURNS smallint LANGUAGE sql STABLE AS $$
    SELECT (1 + floor(date_part('epoch', at) / 21600)::bigint % 32)::smallint
$$;

-- Events, in batches.
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

-- The number up to which events may have been removed.
CREATE TABLE windrow.event_floor (
    seq bigint NOT NULL
);
INSERT INTO windrow.event_floor (seq) VALUES (0);

-- Events of a caller's own transaction and of dialects, numbered when it commits: a ticket held for
-- as long as the caller likes would stop all readers. Unlogged: no row outlives its transaction.
CREATE UNLOGGED TABLE windrow.event_draft (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    group_id uuid,
    type text NOT NULL,
    state text,
    queue text,
    kind text,
    tenant text,
    job_ids uuid[],
    details json
);

-- Move a draft to the events, at the commit.
CREATE FUNCTION windrow.publish_draft() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO windrow.event (at, leaf, group_id, type, state, queue, kind, tenant, job_ids,
                               details)
    VALUES (NEW.at, windrow.event_leaf(NEW.at), NEW.group_id, NEW.type, NEW.state, NEW.queue,
            NEW.kind, NEW.tenant, NEW.job_ids, NEW.details);
    DELETE FROM windrow.event_draft WHERE number = NEW.number;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER publish_draft AFTER INSERT ON windrow.event_draft
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION windrow.publish_draft();


-- # Transfer between databases

-- Jobs, groups and schedules taken from this database that may not have arrived at the target.
CREATE TABLE windrow.copy_outbox (
    number bigint GENERATED ALWAYS AS IDENTITY,
    parcel uuid NOT NULL,
    target text NOT NULL,
    item text NOT NULL,
    body text NOT NULL
);
CREATE INDEX copy_outbox_parcel ON windrow.copy_outbox (parcel, number);

-- Parcels that arrived from another database, with their receipts, so that none is taken in twice.
CREATE TABLE windrow.copy_inbox (
    parcel uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    receipt text NOT NULL
);

-- Rows imported from tables of other queues, by origin and key there, so that none is imported twice,
-- whatever became of its job. Only the owner and workers have rights here.
CREATE TABLE windrow.imported (
    origin text NOT NULL,
    key text NOT NULL,
    checksum text NOT NULL,
    job_id uuid,
    imported_at timestamptz NOT NULL,
    PRIMARY KEY (origin, key)
);

-- Runs of jobs whose queue is in BullMQ and whose rows are here: the last run that wrote, and the
-- outcome (JSON) of the one that ended, which is written with its rows and final. Only the owner and
-- workers have rights here.
CREATE TABLE windrow.far_run (
    key text PRIMARY KEY,
    run bigint NOT NULL,
    ended text,
    kept_at timestamptz NOT NULL
);


-- # Dialects

-- The foreign schemas installed over the queue: `windrow db dialect`.
CREATE TABLE windrow.dialect (
    name text PRIMARY KEY,
    version text NOT NULL,
    installed_at timestamptz NOT NULL
);


-- # Tenancy

-- The tenant that a role acts for, whatever its session sets. Only the owner of the tables writes
-- here. docs/decisions/0010-tenancy.md has the rest.
CREATE TABLE windrow.tenant_role (
    role name PRIMARY KEY,
    tenant text NOT NULL CHECK (tenant <> '')
);

-- The role that the session acts as: that of SET ROLE, else the one that logged in. Not current_user,
-- which within a SECURITY DEFINER function is its owner.
CREATE FUNCTION windrow.acting_role() RETURNS name LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE current_setting('role') WHEN 'none' THEN session_user
           ELSE current_setting('role')::name END
$$;

-- The tenant that the session acts for. The setting windrow.tenant counts only for members of
-- windrow_api, which act for many tenants. SECURITY DEFINER: the role may not read tenant_role.
CREATE FUNCTION windrow.session_tenant() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    set_role CONSTANT text := current_setting('role');
    who CONSTANT name := CASE set_role WHEN 'none' THEN session_user ELSE set_role END;
    said CONSTANT text := nullif(current_setting('windrow.tenant', true), '');
    found text;
BEGIN
    SELECT tenant INTO found FROM windrow.tenant_role WHERE role = who;
    IF found IS NULL AND said IS NOT NULL
       AND EXISTS (SELECT FROM pg_roles
                    WHERE rolname = 'windrow_api' AND pg_has_role(who, oid, 'USAGE')) THEN
        RETURN said;
    END IF;
    RETURN found;
END
$$;

-- What the session may do: 'all', what a 'tenant' may, only to 'enqueue', or 'nothing'. PL/pgSQL keeps
-- its plan for the session; a function in SQL would be planned at each call.
CREATE FUNCTION windrow.session_access() RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    set_role CONSTANT text := current_setting('role');
    who CONSTANT name := CASE set_role WHEN 'none' THEN session_user ELSE set_role END;
    is_secured boolean;
    owner oid;
BEGIN
    SELECT relrowsecurity, relowner INTO is_secured, owner
      FROM pg_class WHERE oid = 'windrow.job'::regclass;
    IF NOT is_secured OR pg_has_role(who, owner, 'USAGE')
       OR (SELECT rolbypassrls FROM pg_roles WHERE rolname = who)
       OR EXISTS (SELECT FROM pg_roles
                   WHERE rolname = 'windrow_worker' AND pg_has_role(who, oid, 'USAGE')) THEN
        RETURN 'all';
    ELSIF EXISTS (SELECT FROM pg_roles
                   WHERE rolname = 'windrow_tenant' AND pg_has_role(who, oid, 'USAGE')) THEN
        RETURN 'tenant';
    ELSIF EXISTS (SELECT FROM pg_roles
                   WHERE rolname = 'windrow_enqueuer' AND pg_has_role(who, oid, 'USAGE')) THEN
        RETURN 'enqueue';
    END IF;
    RETURN 'nothing';
END
$$;


-- # Catalog

-- Collections: what is searched together, and so is embedded by one model. Searches read
-- `generation`; `next_generation` is being built, with its model.
CREATE TABLE windrow.collection (
    tenant text NOT NULL,
    name text NOT NULL,
    embedder text NOT NULL,
    dimension integer NOT NULL,
    generation integer NOT NULL,
    next_embedder text,
    next_dimension integer,
    next_generation integer,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Sources of documents: a site, a folder, a note. `options` is a JSON object, `tags` an array.
CREATE TABLE windrow.source (
    tenant text NOT NULL,
    id text NOT NULL,
    collection text NOT NULL,
    kind text NOT NULL,
    uri text NOT NULL,
    title text NOT NULL,
    options json NOT NULL,
    tags json NOT NULL,
    refresh_seconds bigint,
    etag text,
    last_modified text,
    error text,
    created_at timestamptz NOT NULL,
    refreshed_at timestamptz,
    PRIMARY KEY (tenant, id)
);

-- Documents. `content` is the text that is searchable now; `pending` becomes searchable once it is in
-- the index. Chunks in the index that no document names are not shown.
CREATE TABLE windrow.document (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    collection text NOT NULL,
    source text NOT NULL,
    uri text NOT NULL,
    branch text NOT NULL,
    title text NOT NULL,
    language text NOT NULL,
    tags json NOT NULL,
    metadata json NOT NULL,
    content_hash text NOT NULL,
    content uuid,
    pending uuid,
    size bigint NOT NULL,
    skipped text,
    dated_at timestamptz,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX document_by_place ON windrow.document (tenant, collection, source, uri, branch);
CREATE INDEX document_by_content ON windrow.document (content) WHERE content IS NOT NULL;
CREATE INDEX document_by_pending ON windrow.document (pending) WHERE pending IS NOT NULL;

-- The text of documents. `space` is where in the index its chunks were written last. `dropped_at` is
-- set when a document stops using the text, which is removed if no other document names it.
CREATE TABLE windrow.content (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    collection text NOT NULL,
    chunks integer NOT NULL,
    space text,
    dropped_at timestamptz,
    created_at timestamptz NOT NULL,
    text text NOT NULL
);
CREATE INDEX content_by_collection ON windrow.content (tenant, collection, id);
CREATE INDEX content_dropped ON windrow.content (id) WHERE dropped_at IS NOT NULL;

-- The page cache: documents that a scrape may return again, and the last version of pages whose
-- changes are tracked. `key` is a hash of tenant, url and variant. `site` is the host with its labels
-- reversed and a dot after each (`org.example.`), so that a site and its subdomains are one range.
-- When the cache is too large the oldest pages are removed first. Only the owner and workers have
-- rights here.
CREATE TABLE windrow.page (
    key bytea PRIMARY KEY,
    tenant text,
    url text NOT NULL,
    variant text NOT NULL,
    etag text,
    last_modified text,
    fetched_at timestamptz NOT NULL,
    bytes integer NOT NULL,
    body bytea NOT NULL,
    site text COLLATE "C"
);
-- The body is compressed already.
ALTER TABLE windrow.page ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX page_by_age ON windrow.page (fetched_at, key) INCLUDE (bytes);
CREATE INDEX page_by_site ON windrow.page (site, tenant, url) WHERE site IS NOT NULL;

-- Recordings of calls. `status` is the stage of processing, `error` why it failed, `note` what is
-- missing of the recording. `analysed_from` names what `analysis`, a JSON object, was made from.
-- Only the owner and workers have rights here.
CREATE TABLE windrow.call (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    collection text NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    error text,
    seconds double precision,
    note text,
    analysis json,
    analysed_from text,
    created_at timestamptz NOT NULL
);
CREATE INDEX call_tenant ON windrow.call (tenant, created_at);
-- Calls that have not ended are counted by stage, however many have.
CREATE INDEX call_under_way ON windrow.call (status, tenant)
    WHERE status NOT IN ('done', 'failed');

-- Artifacts of a call in the artifact store, by name. Only the owner and workers have rights here.
CREATE TABLE windrow.call_artifact (
    call uuid NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    size bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (call, name)
);


-- # Accounts

-- Credentials for sites, sealed with a key that is not in the database. Only the owner and workers
-- have rights here.
CREATE TABLE windrow.credential (
    tenant text NOT NULL,
    name text NOT NULL,
    origin text NOT NULL,
    holds text[] NOT NULL,
    sealed bytea NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Keys of the HTTP API. Only the SHA-256 of a key is stored; `tenant` is '' for a key of all tenants.
-- Only the owner and workers have rights here.
CREATE TABLE windrow.api_key (
    name text PRIMARY KEY,
    hash text NOT NULL UNIQUE,
    tenant text NOT NULL,
    role text NOT NULL,
    created_at timestamptz NOT NULL
);

-- Digests of the dashboard's sessions that were logged out, until their cookies expire. Only the owner
-- and workers have rights here.
CREATE TABLE windrow.revoked_session (
    id text PRIMARY KEY,
    expires_at timestamptz NOT NULL
);

-- The credits that a tenant may use of the HTTP API in a period. Only the owner and workers have
-- rights here.
CREATE TABLE windrow.quota (
    tenant text PRIMARY KEY,
    credits bigint NOT NULL,
    per text NOT NULL  -- day or month, in UTC
);

-- The credits used in the period that began at `period`, without those of open runs. Only the owner
-- and workers have rights here.
CREATE TABLE windrow.usage (
    tenant text NOT NULL,
    period timestamptz NOT NULL,
    credits bigint NOT NULL,
    PRIMARY KEY (tenant, period)
);

-- Groups whose members cost credits. While a run is open, its group's row has the count; closing it
-- adds the count to the usage. A closed run stays for a while, so that it is not opened again.
-- Only the owner and workers have rights here.
CREATE TABLE windrow.usage_run (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    period timestamptz NOT NULL,
    is_open boolean NOT NULL DEFAULT true
);
CREATE INDEX usage_run_tenant ON windrow.usage_run (tenant, period);
