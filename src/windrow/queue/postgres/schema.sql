-- What the migrations add up to: the tables as they are now, for reading. A test applies this file
-- to an empty database and finds the same tables as after all migrations.

CREATE SCHEMA windrow;

-- Which migrations were applied, and when.
CREATE TABLE windrow.migration (
    version integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- A job is one narrow row of windrow.job: in the leaf job_live while it can still change, in
-- job_finished once it is final. The payload lies beside it in a table that is only inserted into;
-- the result goes into the finished row, which is written once anyway. A row leaves job_live by DELETE … RETURNING and INSERT in one statement, never by
-- an UPDATE of the partition key, which would fail the statements waiting for the row.
--
-- The columns that a claim changes come last: a new version on the same page then logs only its
-- tail. docs/decisions/0001-storage-shape.md has the figures.

CREATE SEQUENCE windrow.job_seq;

-- Every job: where it waits, what runs it, in which state it is, who holds its lease.
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
    limit_keys text[],  -- the first is the job's fairness key
    max_hold_seconds bigint,
    leaf smallint,  -- of a finished job: 1 to 28 by the hour of its expiry, 0 if it is kept longer
    number bigint  -- in its queue, where a dialect counts queue by queue
) PARTITION BY LIST (state);

-- Jobs that have not ended: the leaf that is claimed from.
CREATE TABLE windrow.job_live PARTITION OF windrow.job
    FOR VALUES IN ('scheduled', 'held', 'paused', 'ready', 'active', 'waiting');

-- Jobs that have ended.
CREATE TABLE windrow.job_finished PARTITION OF windrow.job
    FOR VALUES IN ('completed', 'failed', 'cancelled')
    PARTITION BY LIST (leaf);

-- Finished jobs lie in a ring of leaves, one for each hour in which they expire, used again every 28
-- hours: a leaf is emptied as a whole when its hour is over and nobody ever has to make, attach or
-- drop one. A job that is kept for more than a day, or with its group, or for ever lies in
-- job_finished_kept. docs/decisions/0005-retention.md says why.
CREATE TABLE windrow.job_finished_kept PARTITION OF windrow.job_finished FOR VALUES IN (0, NULL);

DO $$
BEGIN
    FOR leaf IN 1..28 LOOP
        EXECUTE format('CREATE TABLE windrow.job_finished_%s PARTITION OF windrow.job_finished '
                       'FOR VALUES IN (%s)', to_char(leaf, 'FM00'), leaf);
    END LOOP;
END $$;

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
CREATE INDEX job_live_held ON windrow.job_live ((limit_keys[1]), priority DESC, seq)
    WHERE state = 'held' AND NOT is_follower;
CREATE INDEX job_live_hold ON windrow.job_live (max_hold_seconds, run_at)
    WHERE state = 'held' AND NOT is_follower AND max_hold_seconds IS NOT NULL;

CREATE INDEX job_finished_id ON windrow.job_finished (id);
CREATE INDEX job_finished_group ON windrow.job_finished (group_id, id) WHERE group_id IS NOT NULL;
CREATE INDEX job_finished_ended ON windrow.job_finished (group_id, finished_at, id)
    WHERE group_id IS NOT NULL;
CREATE INDEX job_finished_tenant ON windrow.job_finished (tenant, id) WHERE tenant IS NOT NULL;
CREATE INDEX job_finished_unique ON windrow.job_finished (unique_key, id)
    WHERE unique_key IS NOT NULL;
CREATE INDEX job_finished_blob ON windrow.job_finished (result_hash)
    WHERE result_hash IS NOT NULL;
CREATE INDEX job_finished_unsuccessful ON windrow.job_finished (state, id)
    WHERE state <> 'completed';
CREATE INDEX job_finished_kept_expiry ON windrow.job_finished_kept (expires_at)
    WHERE expires_at < 'infinity';

-- json, not jsonb: what was handed in is given back as it was spelled, numbers too.
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

-- What went wrong in the runs of a job, oldest first.
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

-- What parts of a job's runs gave back, so that a later run need not do them again.
CREATE TABLE windrow.job_step (
    at timestamptz NOT NULL,
    job_id uuid NOT NULL,
    name text NOT NULL,
    result json NOT NULL,
    PRIMARY KEY (job_id, name)
);

-- How far a run is, as it said last.
CREATE TABLE windrow.job_progress (
    id uuid PRIMARY KEY,
    updated_at timestamptz NOT NULL,
    percent integer NOT NULL,
    message text,
    counters jsonb NOT NULL
) WITH (fillfactor = 50);

-- One row per claim and lease length; no index on its expiry, so that a renewal stays on its page.
CREATE TABLE windrow.lease (
    token uuid PRIMARY KEY,
    claimed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    seconds bigint NOT NULL,
    worker text NOT NULL,
    job_ids uuid[] NOT NULL
) WITH (fillfactor = 50);

-- Groups: how many of their members have ended, and how; what runs when the last one has.
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
    expires_at timestamptz,  -- set while it has ended and no member of it runs again
    max_jobs bigint  -- how many members it takes, ever
) WITH (fillfactor = 50);
CREATE INDEX job_group_paused ON windrow.job_group (id) WHERE is_paused;
CREATE INDEX job_group_active ON windrow.job_group (id) WHERE state = 'active';
CREATE INDEX job_group_expiry ON windrow.job_group (expires_at) WHERE expires_at IS NOT NULL;

-- Keys of a group's members, which it takes once and never again, however their jobs ended. A key is
-- kept as the 16 bytes of its hash. Insert-only: written under the lock of the group's row, and gone
-- with the group.
CREATE TABLE windrow.group_key (
    group_id uuid NOT NULL,
    key bytea NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (group_id, key)
);

-- What is kept of web pages from one scrape to the next: documents that may be handed out again, and
-- the last version of those whose changes somebody follows. The key is a hash of tenant, url and
-- variant. The body is compressed already. Only workers read and write here; the oldest go first when
-- all of it takes too much room.
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
ALTER TABLE windrow.page ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE INDEX page_by_age ON windrow.page (fetched_at, key) INCLUDE (bytes);
CREATE INDEX page_by_site ON windrow.page (site, tenant, url) WHERE site IS NOT NULL;

-- What jobs of a group note for whoever looks at it later, such as the pages that a crawl passed over.
-- Written in the transaction that completes the job, each once, and gone with the group. There is no
-- foreign key: its lock on the group's row would come before those that the completion takes.
CREATE TABLE windrow.group_note (
    group_id uuid NOT NULL,
    subject text NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (group_id, subject, text)
);

-- What was set for a queue: paused, bounded, how long its jobs are kept.
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

-- What a key allows, its tokens and its turn. What it has in use is never kept: it is counted from
-- job_live, where job_slot says to look.
CREATE TABLE windrow.job_limit (
    key text PRIMARY KEY,
    active integer,
    per_second double precision,
    burst integer,
    weight double precision NOT NULL DEFAULT 1,
    tokens double precision,
    refilled_at timestamptz,
    parked_until timestamptz,
    turn double precision NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX job_limit_parked ON windrow.job_limit (key) WHERE parked_until IS NOT NULL;

-- Which jobs count under a limit's key.
CREATE TABLE windrow.job_slot (
    key text NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (key, job_id)
);

-- Changes to the number of jobs of a queue in a state; their sum is the number.
CREATE TABLE windrow.tally (
    n bigint NOT NULL,
    queue text NOT NULL,
    state text NOT NULL
);

-- Counts of jobs whose statement has told those who sleep by itself, so that no trigger has to.
CREATE TABLE windrow.tally_told () INHERITS (windrow.tally);

-- Schedules: for every slot (next_at, then the one after it, …) a job like the one in `job` is
-- inserted. json, not jsonb: the payload is given back as it was spelled.
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

-- Who does what only one may do, until when.
CREATE TABLE windrow.leader (
    role text PRIMARY KEY,
    holder text NOT NULL,
    expires_at timestamptz NOT NULL
);

-- Which workers are alive, and what they take. Unlogged: a row is worth something only until the next
-- heartbeat, which writes it anew.
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
    kinds text[]
) WITH (fillfactor = 50);

-- What sites must be shown to let one in, sealed with a key that is not here. `tenant` is empty where
-- there is none. Only workers and the owner read this: no tenant's role is given anything.
CREATE TABLE windrow.credential (
    tenant text NOT NULL,
    name text NOT NULL,
    origin text NOT NULL,
    holds text[] NOT NULL,
    sealed bytea NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Who may use the HTTP API. Of a key only the SHA-256 is kept; `tenant` is empty where it is one of
-- all tenants. Only the owner and workers read this: no tenant's role is given anything.
CREATE TABLE windrow.api_key (
    name text PRIMARY KEY,
    hash text NOT NULL UNIQUE,
    tenant text NOT NULL,
    role text NOT NULL,
    created_at timestamptz NOT NULL
);

-- What tenants may use of the HTTP API in a period, and what they have used. Only the owner and
-- workers read and write this: no tenant's role is given anything.
CREATE TABLE windrow.quota (
    tenant text PRIMARY KEY,
    credits bigint NOT NULL,
    per text NOT NULL  -- day or month, by UTC
);

-- Credits that were used in the period that began at `period`, without those of open runs.
CREATE TABLE windrow.usage (
    tenant text NOT NULL,
    period timestamptz NOT NULL,
    credits bigint NOT NULL,
    PRIMARY KEY (tenant, period)
);

-- Groups whose members are paid for: while a run is open its group's row has the count, then the
-- usage has. It stays for a while, closed, so that it is not opened again.
CREATE TABLE windrow.usage_run (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    period timestamptz NOT NULL,
    is_open boolean NOT NULL DEFAULT true
);
CREATE INDEX usage_run_tenant ON windrow.usage_run (tenant, period);

-- When everything due was last removed.
CREATE TABLE windrow.pruning (
    done_at timestamptz NOT NULL
);

-- Who sleeps until there is work, and who until a job ends. Only for them is anything sent. Unlogged:
-- after a crash of the server nobody sleeps any more, everybody connects anew and looks.
CREATE UNLOGGED TABLE windrow.sleeper (
    id uuid PRIMARY KEY,
    queues text[],
    until timestamptz NOT NULL
);
-- Who waits for the end of a job.
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

-- Moving jobs between databases. The outbox: what was taken from here and may not be there yet. The
-- inbox: which parcels were taken in, and what became of them.
CREATE TABLE windrow.copy_outbox (
    number bigint GENERATED ALWAYS AS IDENTITY,
    parcel uuid NOT NULL,
    target text NOT NULL,
    item text NOT NULL,
    body text NOT NULL
);
CREATE INDEX copy_outbox_parcel ON windrow.copy_outbox (parcel, number);

-- What came from another database: receipts of parcels.
CREATE TABLE windrow.copy_inbox (
    parcel uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    receipt text NOT NULL
);

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

-- Events lie in a ring of 32 leaves, six hours each, so that old ones go by truncation.
CREATE FUNCTION windrow.event_leaf(at timestamptz) RETURNS smallint LANGUAGE sql STABLE AS $$
    SELECT (1 + floor(date_part('epoch', at) / 21600)::bigint % 32)::smallint
$$;

-- What happened, in batches; see docs/decisions/0008-events.md.
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
    job_ids uuid[],
    details json
);

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

-- Which foreign schemas lie over the queue: `windrow db dialect`.
CREATE TABLE windrow.dialect (
    name text PRIMARY KEY,
    version text NOT NULL,
    installed_at timestamptz NOT NULL
);

-- Which roles belong to a tenant. A role that is here acts for that tenant and no other, whatever its
-- session sets. Only the owner of the tables writes here. docs/decisions/0010-tenancy.md has the rest.
CREATE TABLE windrow.tenant_role (
    role name PRIMARY KEY,
    tenant text NOT NULL CHECK (tenant <> '')
);

-- Who the session acts as: whom SET ROLE made it, else who logged in. Not current_user, which within
-- a SECURITY DEFINER function is its owner. Postgres lets a session set only roles that it may be.
CREATE FUNCTION windrow.acting_role() RETURNS name LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE current_setting('role') WHEN 'none' THEN session_user
           ELSE current_setting('role')::name END
$$;

-- The tenant that the session acts for. What it has set counts only for those who speak for many
-- tenants, the members of windrow_api. Reads tenant_role as the owner, for roles that may not.
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

-- What the session may do: 'all', what a 'tenant' may, only to 'enqueue', or 'nothing'.
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

-- What was ingested and can be found. `tenant` is empty where there is none. Tenants read their own
-- rows and write them through the gate.
--
-- A collection is searched as one: all of it is embedded by the same model. `generation` is the one
-- that searches read, `next_generation` the one that is being built, with its model.
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

-- Where documents come from: a site, a folder, a note … `options` is a JSON object, `tags` an array.
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

-- A document names the content that is searchable now, and `pending`, which will be once the index
-- has it. Whatever the index has that no document names is not shown.
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

-- The text of documents. `space` is where in the index its chunks were written last; `dropped_at`
-- says that a document has let go of it: it is removed if no other names it.
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
-- Recordings of calls on their way to a transcript and what is made of it. `status` says which stage
-- they are in, `error` why it failed, `note` what is missing of the recording. `analysed_from` names
-- what the analysis, a JSON object, was made of. Only the owner and workers read and write this: no
-- tenant's role is given anything.
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
CREATE INDEX call_under_way ON windrow.call (status, tenant)
    WHERE status NOT IN ('done', 'failed');

-- What is kept of a call in the store of artifacts, by the name of its part.
CREATE TABLE windrow.call_artifact (
    call uuid NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    size bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (call, name)
);

-- What came from elsewhere: rows of other queues' tables, by the place they came from and their key
-- there, so that none is taken in twice, whatever has become of its job. Only the owner and workers
-- read and write this: no tenant's role is given anything.
CREATE TABLE windrow.imported (
    origin text NOT NULL,
    key text NOT NULL,
    checksum text NOT NULL,
    job_id uuid,
    imported_at timestamptz NOT NULL,
    PRIMARY KEY (origin, key)
);

-- Runs of jobs whose queue is elsewhere, in BullMQ, and whose rows are here: the last run that wrote,
-- and, once one has ended, how (JSON): that is written with its rows, and stands. Only the owner and
-- workers read and write this: no tenant's role is given anything.
CREATE TABLE windrow.far_run (
    key text PRIMARY KEY,
    run bigint NOT NULL,
    ended text,
    kept_at timestamptz NOT NULL
);
