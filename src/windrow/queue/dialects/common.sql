-- What dialects are made of, in the schema windrow_dialect. Beside these functions it has the store's
-- own statements under their names (see SHARED in queue/postgres/dialects.py), each giving objects:
-- insert_jobs, end_jobs, return_jobs, wait_for_group, promote_followers, settle_groups, …
--
-- Written for triggers: each acts on one job, in the caller's transaction, and keeps the tally, the
-- leases, the groups, the followers and the events true. Lock order as everywhere: jobs, then groups.
--
--   new_id() · as_uuid(name)                          ids; a name that is none, by UUIDv5
--   lock_job(id)                                      the live row, locked; nothing if it is not live
--   try_job(id) · lock_group(id)                      a job and its group, if nobody has them; with all its members
--   insert_job(row)                                   a new job, by the fields of a JobRow
--   claim_job(id, worker, seconds[, at, token])       ready or due → active, under a lease of its own
--   renew_job(id, at[, seconds])                      its lease as if it had been taken at that time
--   rescue_job(id)                                    its lease is over: the crash counted, it waits or failed
--   finish_job(id, state[, error, result, …, at])     any live state → completed, failed, cancelled
--   return_job(id, run_at[, error, …])                active → waits again, or ends if it may not
--   schedule_job(id, run_at)                          an unclaimed job is due then: ready or scheduled
--   retry_job(id)                                     failed or cancelled → ready, as if it had not run
--   set_aside(id) · make_ready(id)                    unclaimed → paused; paused or scheduled → ready
--   put_progress(id, percent) · set_finished_at(id, at)
--   may_start(job) · tend_queue(name)                 is nothing of it paused; see to what is due or lost
--   delete_job(id)                                    without a trace
--   is_over(lease)                                    whether nobody holds a lease any more
--   carry_over(old, new, now)                         an update of a row that changed meanwhile, on top of it
--   as_jsonb(json)                                    a payload, also one that jsonb does not take

-- Events of a dialect are those of a caller's transaction: drafted, and numbered when it commits.
CREATE OR REPLACE VIEW windrow_dialect.event WITH (security_invoker = true) AS
SELECT at, leaf, type, state, queue, kind, tenant, group_id, job_ids, details FROM windrow.event;

CREATE OR REPLACE FUNCTION windrow_dialect.draft_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO windrow.event_draft (at, type, state, queue, kind, tenant, group_id, job_ids, details)
    VALUES (NEW.at, NEW.type, NEW.state, NEW.queue, NEW.kind, NEW.tenant, NEW.group_id,
            NEW.job_ids, NEW.details);
    RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER draft_event INSTEAD OF INSERT ON windrow_dialect.event
    FOR EACH ROW EXECUTE FUNCTION windrow_dialect.draft_event();

-- A time-ordered id, UUID version 7.
CREATE OR REPLACE FUNCTION windrow_dialect.new_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(
               set_bit(set_bit(
                   overlay(uuid_send(gen_random_uuid())
                           PLACING substring(int8send(floor(date_part('epoch', clock_timestamp())
                                                            * 1000)::bigint) FROM 3)
                           FROM 1 FOR 6),
                   52, 1), 53, 1),
               'hex')::uuid
$$;

-- SHA-1, which Postgres has only with an extension.
CREATE OR REPLACE FUNCTION windrow_dialect.sha1(message bytea) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    mask CONSTANT bigint := 4294967295;
    size CONSTANT integer := length(message);
    padded CONSTANT bytea := message || '\x80'::bytea
                             || decode(repeat('00', (119 - size % 64) % 64), 'hex')
                             || int8send(size::bigint * 8);
    hash bigint[] := ARRAY[1732584193, 4023233417, 2562383102, 271733878, 3285377520];
    word bigint[];
    at integer;
    a bigint; b bigint; c bigint; d bigint; e bigint; f bigint; k bigint; t bigint;
BEGIN
    FOR block IN 0 .. length(padded) / 64 - 1 LOOP
        FOR i IN 0 .. 15 LOOP
            at := block * 64 + i * 4;
            word[i] := (get_byte(padded, at)::bigint << 24) | (get_byte(padded, at + 1) << 16)
                       | (get_byte(padded, at + 2) << 8) | get_byte(padded, at + 3);
        END LOOP;
        FOR i IN 16 .. 79 LOOP
            t := word[i - 3] # word[i - 8] # word[i - 14] # word[i - 16];
            word[i] := ((t << 1) | (t >> 31)) & mask;
        END LOOP;
        a := hash[1]; b := hash[2]; c := hash[3]; d := hash[4]; e := hash[5];
        FOR i IN 0 .. 79 LOOP
            IF i < 20 THEN
                f := (b & c) | ((b # mask) & d);
                k := 1518500249;
            ELSIF i < 40 THEN
                f := b # c # d;
                k := 1859775393;
            ELSIF i < 60 THEN
                f := (b & c) | (b & d) | (c & d);
                k := 2400959708;
            ELSE
                f := b # c # d;
                k := 3395469782;
            END IF;
            t := ((((a << 5) | (a >> 27)) & mask) + f + e + k + word[i]) & mask;
            e := d; d := c; c := ((b << 30) | (b >> 2)) & mask; b := a; a := t;
        END LOOP;
        hash := ARRAY[(hash[1] + a) & mask, (hash[2] + b) & mask, (hash[3] + c) & mask,
                      (hash[4] + d) & mask, (hash[5] + e) & mask];
    END LOOP;
    RETURN substring(int8send(hash[1]) FROM 5) || substring(int8send(hash[2]) FROM 5)
           || substring(int8send(hash[3]) FROM 5) || substring(int8send(hash[4]) FROM 5)
           || substring(int8send(hash[5]) FROM 5);
END
$$;

-- A name as a UUID: one that is a UUID as it is, any other by UUIDv5, as ids.owner_id does it.
CREATE OR REPLACE FUNCTION windrow_dialect.as_uuid(name text) RETURNS uuid
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    plain CONSTANT text := replace(btrim(replace(replace(name, 'urn:', ''), 'uuid:', ''), '{}'),
                                   '-', '');
    hash bytea;
BEGIN
    IF plain ~ '^[0-9a-fA-F]{32}$' THEN
        RETURN plain::uuid;
    END IF;
    hash := substring(windrow_dialect.sha1(
                uuid_send('0f38e00e-d7ee-4b77-8a7a-a787a3537ca2') || convert_to(name, 'UTF8'))
            FROM 1 FOR 16);
    hash := set_byte(hash, 6, (get_byte(hash, 6) & 15) | 80);
    hash := set_byte(hash, 8, (get_byte(hash, 8) & 63) | 128);
    RETURN encode(hash, 'hex')::uuid;
END
$$;

-- The live row of a job, locked; all null if it is not live.
CREATE OR REPLACE FUNCTION windrow_dialect.lock_job(job_id uuid) RETURNS windrow.job_live
LANGUAGE plpgsql AS $$
DECLARE
    job windrow.job_live;
BEGIN
    SELECT * INTO job FROM windrow.job_live WHERE id = job_id FOR UPDATE;
    RETURN job;
END
$$;

-- Lock a job, live or finished, and its group, if nobody has them. Whether both were to be had: for
-- what reaps and cleans, which takes jobs as it finds them and comes again for those it did not get.
CREATE OR REPLACE FUNCTION windrow_dialect.try_job(job_id uuid, with_group boolean DEFAULT true)
RETURNS boolean
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    member_of uuid;
BEGIN
    SELECT group_id INTO member_of FROM windrow.job_live WHERE id = job_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        SELECT group_id INTO member_of
          FROM windrow.job_finished WHERE id = job_id FOR UPDATE SKIP LOCKED;
    END IF;
    IF NOT FOUND OR member_of IS NULL OR NOT with_group THEN
        RETURN FOUND;
    END IF;
    PERFORM FROM windrow.job_group WHERE id = member_of FOR UPDATE SKIP LOCKED;
    RETURN FOUND OR NOT EXISTS (SELECT FROM windrow.job_group WHERE id = member_of);
END
$$;

-- Whether nobody holds a lease any more: it ran out, or there is none of this token.
-- IMMUTABLE is not the truth, but needed: with it a CASE that asks may stand in a CHECK of the
-- finished leaves, by which the planner leaves them out of a claim. Never to be used in an index.
CREATE OR REPLACE FUNCTION windrow_dialect.is_over(token uuid) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM windrow.lease
                        WHERE lease.token = is_over.token
                          AND lease.expires_at > statement_timestamp());
END
$$;

-- The columns that an update changed, written over the row as it is now.
CREATE OR REPLACE FUNCTION windrow_dialect.carry_over(old jsonb, new jsonb, now_there jsonb)
RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT now_there || coalesce(jsonb_object_agg(key, value), '{}')
      FROM jsonb_each(new) WHERE value IS DISTINCT FROM old -> key
$$;

-- JSON as jsonb, which knows no NUL character: U+FFFD stands in its place.
CREATE OR REPLACE FUNCTION windrow_dialect.as_jsonb(given json) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN strpos(given::text, '\u0000') = 0 THEN given::text::jsonb
                ELSE regexp_replace(given::text, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::jsonb
           END
$$;

-- A job went from one state to another (null: was or is not there).
CREATE OR REPLACE FUNCTION windrow_dialect.count_move(queue text, before text, after text)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO windrow.tally (n, queue, state)
    SELECT step, count_move.queue, state
      FROM (VALUES (-1, before), (1, after)) AS change (step, state)
     WHERE state IS NOT NULL AND before IS DISTINCT FROM after
$$;

-- The tenant of a new job: who is named, else the one that the session acts for, who may also be named
-- by the UUID that a dialect shows for it.
CREATE OR REPLACE FUNCTION windrow_dialect.own_tenant(given text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN given IS NULL OR given = windrow_dialect.as_uuid(acting)::text THEN acting
                ELSE given END
      FROM windrow.session_tenant() AS acting
$$;

-- A new job, ready or scheduled. `given` has the fields of a JobRow, of which only queue and kind are
-- needed, created_at, and joins_any_group: a group that is missing or has ended is no error. Raises
-- unique_violation if its id or unique key is taken.
CREATE OR REPLACE FUNCTION windrow_dialect.insert_job(given json) RETURNS windrow.job_live
LANGUAGE plpgsql AS $$
DECLARE
    filled CONSTANT json := json_build_object(
        'id', coalesce((given ->> 'id')::uuid, windrow_dialect.new_id()),
        'queue', given ->> 'queue',
        'kind', given ->> 'kind',
        'payload', coalesce(given -> 'payload', 'null'),
        'headers', given -> 'headers',
        'tags', coalesce(given -> 'tags', '[]'),
        'priority', coalesce((given ->> 'priority')::integer, 5),
        'run_at', given ->> 'run_at',
        'delay', given ->> 'delay',
        'unique', given ->> 'unique',
        'tenant', windrow_dialect.own_tenant(given ->> 'tenant'),
        'group', given ->> 'group',
        'max_attempts', coalesce((given ->> 'max_attempts')::integer, 5),
        'max_crashes', coalesce((given ->> 'max_crashes')::integer, 5),
        'lease_seconds', given ->> 'lease_seconds',
        'retention_seconds', given ->> 'retention_seconds',
        'limits', coalesce(given -> 'limits', '[]'),
        'max_hold_seconds', given ->> 'max_hold_seconds',
        'is_cleaned', coalesce((given ->> 'is_cleaned')::boolean, false));
    created CONSTANT timestamptz := (given ->> 'created_at')::timestamptz;
    inserted jsonb;
    job windrow.job_live;
BEGIN
    SELECT one INTO inserted
      FROM windrow_dialect.insert_jobs(
               rows => json_build_array(filled)::text, followers => '[]',
               are_drafted => 'true',
               now => windrow_dialect.if_recent(created)::text) AS one;
    IF inserted IS NULL THEN
        RAISE unique_violation
            USING MESSAGE = format('a live job has the id %s or the unique key %s already',
                                   filled ->> 'id', coalesce(filled ->> 'unique', '(none)'));
    END IF;
    SELECT * INTO job FROM windrow.job_live WHERE id = (filled ->> 'id')::uuid;
    PERFORM windrow_dialect.keep_bound(job.queue);
    IF job.group_id IS NOT NULL THEN
        PERFORM windrow_dialect.join_group(
            job.group_id, coalesce((given ->> 'joins_any_group')::boolean, false));
    END IF;
    IF job.created_at <> created THEN
        UPDATE windrow.job_live SET created_at = created WHERE id = job.id RETURNING * INTO job;
    END IF;
    RETURN job;
END
$$;

-- A time that a statement may take for its own; null if it lies further away, which the stream of
-- events, kept by the hour, must not be told.
CREATE OR REPLACE FUNCTION windrow_dialect.if_recent(at timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT at WHERE at BETWEEN statement_timestamp() - interval '1 minute' AND statement_timestamp()
$$;

-- See after an insert that a bounded queue has not become too deep.
CREATE OR REPLACE FUNCTION windrow_dialect.keep_bound(name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    bound jsonb;
    depth bigint;
BEGIN
    FOR bound IN SELECT windrow_dialect.find_bounds(queues => json_build_array(name)::text) LOOP
        SELECT (counted ->> 'depth')::bigint INTO depth
          FROM windrow_dialect.count_unclaimed(queues => json_build_array(name)::text) AS counted;
        IF depth > (bound ->> 'max_depth')::bigint
           AND bound ->> 'on_full' IS DISTINCT FROM 'drop_oldest' THEN
            RAISE program_limit_exceeded
                USING MESSAGE = format('queue %s is full: %s jobs wait, %s may', name, depth - 1,
                                       bound ->> 'max_depth');
        END IF;
    END LOOP;
END
$$;

-- Count one more member of a group, which must take more unless it may be any.
CREATE OR REPLACE FUNCTION windrow_dialect.join_group(group_id uuid, is_any boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    found jsonb;
BEGIN
    SELECT locked INTO found
      FROM windrow_dialect.lock_groups(ids => json_build_array(group_id)::text) AS locked;
    IF is_any THEN
        NULL;
    ELSIF found IS NULL THEN
        RAISE foreign_key_violation USING MESSAGE = format('there is no group %s', group_id);
    ELSIF found ->> 'state' <> 'active' OR (found ->> 'is_cancelled')::boolean THEN
        RAISE object_not_in_prerequisite_state
            USING MESSAGE = format('group %s has ended or is being cancelled', group_id);
    END IF;
    PERFORM windrow_dialect.settle_groups(deltas => json_build_array(
                windrow_dialect.delta(group_id, members => 1, pending => 1))::text);
END
$$;

-- What happened to a group, as settle_groups takes it.
CREATE OR REPLACE FUNCTION windrow_dialect.delta(
    id uuid, members integer DEFAULT 0, pending integer DEFAULT 0, completed integer DEFAULT 0,
    failed integer DEFAULT 0, cancelled integer DEFAULT 0, is_closed boolean DEFAULT false,
    cancel_reason text DEFAULT NULL)
RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object(
        'id', id, 'members', members, 'pending', pending, 'completed', completed,
        'failed', failed, 'cancelled', cancelled, 'is_closed', is_closed,
        'cancel_reason', cancel_reason)
$$;

-- Make a ready job, or a scheduled one, active under a lease of its own, as if taken at `at`. All
-- null if it is neither, or waits for its limits.
CREATE OR REPLACE FUNCTION windrow_dialect.claim_job(
    job_id uuid, worker text, seconds bigint, at timestamptz DEFAULT NULL, token uuid DEFAULT NULL)
RETURNS windrow.job_live LANGUAGE plpgsql AS $$
DECLARE
    job windrow.job_live := windrow_dialect.lock_job(job_id);
    before CONSTANT text := job.state;
    new_token CONSTANT uuid := coalesce(token, gen_random_uuid());
    claimed_at CONSTANT timestamptz := coalesce(at, statement_timestamp());
BEGIN
    IF job.id IS NULL OR NOT (before = 'ready'
                              OR (before = 'scheduled' AND job.limit_keys IS NULL)) THEN
        RETURN NULL;
    END IF;
    -- A token that was given may have been given for other jobs, too.
    INSERT INTO windrow.lease AS held (token, claimed_at, expires_at, seconds, worker, job_ids)
    VALUES (new_token, claimed_at, claimed_at + seconds * interval '1 second', seconds,
            coalesce(claim_job.worker, ''), ARRAY[job_id])
        ON CONFLICT ON CONSTRAINT lease_pkey DO UPDATE
       SET job_ids = held.job_ids || excluded.job_ids,
           expires_at = greatest(held.expires_at, excluded.expires_at);
    UPDATE windrow.job_live
       SET state = 'active', lease = new_token, runs = runs + 1, started_at = claimed_at
     WHERE id = job_id
    RETURNING * INTO job;
    PERFORM windrow_dialect.count_move(job.queue, before, 'active');
    INSERT INTO windrow.event_draft (at, type, state, queue, kind, tenant, group_id, job_ids)
    VALUES (statement_timestamp(), 'job.started', 'active', job.queue, job.kind, job.tenant,
            job.group_id, ARRAY[job_id]);
    RETURN job;
END
$$;

-- The lease of an active job as if it had been taken at `at`, for as long as before. If it holds other
-- jobs too, this one gets a lease of its own, and its holder loses it.
CREATE OR REPLACE FUNCTION windrow_dialect.renew_job(
    job_id uuid, at timestamptz, seconds bigint DEFAULT NULL, worker text DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(job_id);
    held windrow.lease;
BEGIN
    IF job.id IS NULL OR job.state <> 'active' THEN
        RETURN false;
    END IF;
    SELECT * INTO held FROM windrow.lease WHERE token = job.lease FOR UPDATE;
    held.seconds := coalesce(renew_job.seconds, held.seconds, 60);
    held.worker := coalesce(renew_job.worker, held.worker, '');
    IF held.token IS NULL OR cardinality(held.job_ids) > 1 THEN
        held.token := gen_random_uuid();
        INSERT INTO windrow.lease (token, claimed_at, expires_at, seconds, worker, job_ids)
        VALUES (held.token, at, at, held.seconds, held.worker, ARRAY[job_id]);
        UPDATE windrow.job_live SET lease = held.token WHERE id = job_id;
        PERFORM windrow_dialect.delete_leases(tokens => ARRAY[job.lease]);
    END IF;
    UPDATE windrow.lease
       SET claimed_at = at,
           expires_at = at + held.seconds * interval '1 second',
           seconds = held.seconds,
           worker = held.worker
     WHERE token = held.token;
    RETURN true;
END
$$;

-- Notes for `settle`: nothing to do yet.
CREATE OR REPLACE FUNCTION windrow_dialect.no_work() RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT '{"keys": [], "deltas": [], "orphaned": [], "waiting": [], "ended": []}'::jsonb
$$;

-- Add a note to those for `settle`.
CREATE OR REPLACE FUNCTION windrow_dialect.noted(work jsonb, part text, note jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_set(work, ARRAY[part], (work -> part) || jsonb_build_array(note))
$$;

-- Move a job to a final state; returns the notes with what follows from it.
CREATE OR REPLACE FUNCTION windrow_dialect.end_into(
    work jsonb, job_id uuid, after text, from_states text[], error text DEFAULT NULL,
    result json DEFAULT NULL, uses_attempt boolean DEFAULT false, at timestamptz DEFAULT NULL)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    ended jsonb;
BEGIN
    SELECT one INTO ended
      FROM windrow_dialect.end_jobs(
               ids => ARRAY[job_id], tokens => ARRAY[NULL::uuid], states => ARRAY[after],
               errors => ARRAY[error], uses_attempts => ARRAY[uses_attempt],
               results => ARRAY[result], hashes => ARRAY[NULL::bytea],
               are_cleaned => ARRAY[false], from_states => end_into.from_states,
               now => windrow_dialect.if_recent(at)) AS one;
    IF ended IS NULL THEN
        RETURN work;
    END IF;
    work := windrow_dialect.noted(work, 'ended', ended);
    IF ended ->> 'unique_key' IS NOT NULL AND NOT (ended ->> 'is_follower')::boolean THEN
        work := windrow_dialect.noted(work, 'keys', ended -> 'unique_key');
    END IF;
    IF ended ->> 'group_id' IS NOT NULL THEN
        work := windrow_dialect.noted(work, 'deltas', windrow_dialect.delta(
                    (ended ->> 'group_id')::uuid, pending => -1,
                    completed => (after = 'completed')::integer,
                    failed => (after = 'failed')::integer,
                    cancelled => (after = 'cancelled')::integer));
    END IF;
    IF ended ->> 'root_of' IS NOT NULL AND after <> 'completed' THEN
        work := windrow_dialect.noted(work, 'orphaned', jsonb_build_object(
                    'id', ended ->> 'root_of',
                    'reason', coalesce(ended ->> 'error', 'its root job is ' || after)));
    END IF;
    RETURN work;
END
$$;

-- Lock the members of a group, then the group. A member that came meanwhile may be in the hands of
-- somebody who waits for the group: then that is let go of, and the member waited for first.
CREATE OR REPLACE FUNCTION windrow_dialect.lock_group(
    group_id uuid, with_finished boolean DEFAULT false)
RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    locked bigint;
BEGIN
    LOOP
        PERFORM FROM windrow.job_live WHERE group_id = $1 ORDER BY id FOR UPDATE;
        IF with_finished THEN
            PERFORM FROM windrow.job_finished WHERE group_id = $1 ORDER BY id FOR UPDATE;
        END IF;
        BEGIN
            PERFORM windrow_dialect.lock_groups(ids => json_build_array($1)::text);
            SELECT count(*) INTO locked
              FROM (SELECT FROM windrow.job_live WHERE group_id = $1
                       FOR UPDATE SKIP LOCKED) AS member;
            IF locked < (SELECT count(*) FROM windrow.job_live WHERE group_id = $1) THEN
                RAISE lock_not_available;
            END IF;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            CONTINUE;
        END;
    END LOOP;
END
$$;

-- Cancel the members of a group that do not run and ask the others to stop; returns the notes.
CREATE OR REPLACE FUNCTION windrow_dialect.cancel_into(work jsonb, group_id uuid, reason text)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    found jsonb;
    member uuid;
    before integer;
BEGIN
    PERFORM windrow_dialect.lock_group(group_id);
    SELECT one INTO found FROM windrow_dialect.find_groups(ids => ARRAY[group_id]) AS one;
    IF found IS NULL OR found ->> 'state' <> 'active' OR (found ->> 'is_cancelled')::boolean THEN
        RETURN work;
    END IF;
    work := windrow_dialect.noted(work, 'deltas', windrow_dialect.delta(
                group_id, cancel_reason => reason));
    FOR member IN
        SELECT (one ->> 'id')::uuid
          FROM windrow_dialect.find_members(ids => ARRAY[group_id]) AS one
    LOOP
        before := jsonb_array_length(work -> 'ended');
        work := windrow_dialect.end_into(
                    work, member, 'cancelled', '{scheduled,held,paused,ready,waiting}', reason);
        IF jsonb_array_length(work -> 'ended') > before THEN
            PERFORM windrow_dialect.note_error(member, 'cancel', reason);
        ELSE
            PERFORM windrow_dialect.tell_jobs(
                        ids => ARRAY[member], stop_as => 'cancelled', reason => reason);
        END IF;
    END LOOP;
    RETURN work;
END
$$;

-- Do all that follows from ends: keys are handed on, groups counted, and what ends with them. In a
-- loop, because the end of a group may end its root, which may be a member of another group.
CREATE OR REPLACE FUNCTION windrow_dialect.settle(work jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    was jsonb;
    one jsonb;
    deltas text;
BEGIN
    LOOP
        WHILE work -> 'keys' <> '[]' OR work -> 'orphaned' <> '[]' OR work -> 'waiting' <> '[]' LOOP
            was := work;
            work := work || '{"keys": [], "orphaned": [], "waiting": []}';
            IF was -> 'keys' <> '[]' THEN
                PERFORM windrow_dialect.promote_followers(
                    keys => ARRAY(SELECT jsonb_array_elements_text(was -> 'keys')),
                    "limit" => 2147483647);
            END IF;
            FOR one IN SELECT jsonb_array_elements(was -> 'orphaned') LOOP
                work := windrow_dialect.cancel_into(work, (one ->> 'id')::uuid, one ->> 'reason');
            END LOOP;
            FOR one IN SELECT jsonb_array_elements(was -> 'waiting') LOOP
                IF NOT EXISTS (
                    SELECT FROM windrow_dialect.lock_groups(
                               ids => json_build_array(one ->> 'group')::text) AS locked
                     WHERE locked ->> 'state' = 'active') THEN
                    work := windrow_dialect.end_into(
                                work, (one ->> 'root')::uuid, 'completed', '{waiting}');
                END IF;
            END LOOP;
        END LOOP;
        EXIT WHEN work -> 'deltas' = '[]';
        SELECT json_agg(jsonb_build_object(
                   'id', delta.id, 'members', members, 'pending', pending,
                   'completed', completed, 'failed', failed, 'cancelled', cancelled,
                   'is_closed', is_closed, 'cancel_reason', cancel_reason))::text
          INTO deltas
          FROM (SELECT id, sum(members) AS members, sum(pending) AS pending,
                       sum(completed) AS completed, sum(failed) AS failed,
                       sum(cancelled) AS cancelled, bool_or(is_closed) AS is_closed,
                       max(cancel_reason) AS cancel_reason
                  FROM jsonb_to_recordset(work -> 'deltas') AS delta (
                           id uuid, members bigint, pending bigint, completed bigint,
                           failed bigint, cancelled bigint, is_closed boolean,
                           cancel_reason text)
                 GROUP BY id) AS delta;
        work := work || '{"deltas": []}';
        FOR one IN SELECT windrow_dialect.settle_groups(deltas => deltas) LOOP
            work := windrow_dialect.end_group_into(work, one);
        END LOOP;
    END LOOP;
END
$$;

-- A group ended: its root does, and its finish job comes; returns the notes.
CREATE OR REPLACE FUNCTION windrow_dialect.end_group_into(work jsonb, ended jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    given CONSTANT json := (SELECT finish_job FROM windrow.job_group
                             WHERE id = (ended ->> 'id')::uuid);
BEGIN
    IF ended ->> 'root' IS NOT NULL THEN
        work := windrow_dialect.end_into(
                    work, (ended ->> 'root')::uuid, ended ->> 'state', '{waiting}',
                    ended ->> 'cancel_reason');
    END IF;
    IF given IS NOT NULL THEN
        -- One that cannot be inserted, because its key is taken or its group takes no more, is dropped.
        BEGIN
            PERFORM windrow_dialect.insert_job(given);
        EXCEPTION WHEN unique_violation OR foreign_key_violation
                    OR object_not_in_prerequisite_state THEN
            RAISE NOTICE 'the finish job of group % was dropped: %', ended ->> 'id', SQLERRM;
        END;
    END IF;
    RETURN work;
END
$$;

-- Append to the error history of a job.
CREATE OR REPLACE FUNCTION windrow_dialect.note_error(job_id uuid, reason text, message text)
RETURNS void LANGUAGE sql AS $$
    SELECT windrow_dialect.add_errors(
        ids => ARRAY[job_id], times => ARRAY[NULL::timestamptz], reasons => ARRAY[reason],
        types => ARRAY[NULL::text], messages => ARRAY[message], tracebacks => ARRAY[NULL::text])
$$;

-- The first line of a text, as it is kept on the job's row.
CREATE OR REPLACE FUNCTION windrow_dialect.short_error(message text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT left(split_part(message, E'\n', 1), 500)
$$;

-- End a live job, whatever its state: completed, failed or cancelled. A completed root waits for its
-- group. Whether it was live. `is_noted`: the error is also added to the job's history. `at`: when it
-- ended, if that was just now.
CREATE OR REPLACE FUNCTION windrow_dialect.finish_job(
    job_id uuid, after text, error text DEFAULT NULL, result json DEFAULT NULL,
    uses_attempt boolean DEFAULT false, is_noted boolean DEFAULT true,
    at timestamptz DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(job_id);
    work jsonb := windrow_dialect.no_work();
BEGIN
    IF job.id IS NULL THEN
        RETURN false;
    END IF;
    IF error IS NOT NULL AND after <> 'completed' AND is_noted THEN
        PERFORM windrow_dialect.note_error(
            job_id, CASE after WHEN 'failed' THEN 'attempt' ELSE 'cancel' END, error);
    END IF;
    IF after = 'completed' AND job.root_of IS NOT NULL AND job.state = 'active' THEN
        PERFORM windrow_dialect.wait_for_group(
            ids => ARRAY[job_id], tokens => ARRAY[job.lease],
            uses_attempts => ARRAY[uses_attempt], results => ARRAY[result],
            hashes => ARRAY[NULL::bytea], are_cleaned => ARRAY[false]);
        work := windrow_dialect.noted(work, 'waiting', jsonb_build_object(
                    'root', job_id, 'group', job.root_of));
    ELSE
        work := windrow_dialect.end_into(
                    work, job_id, after, ARRAY[job.state], windrow_dialect.short_error(error),
                    result, uses_attempt, at);
    END IF;
    IF job.lease IS NOT NULL THEN
        PERFORM windrow_dialect.delete_leases(tokens => ARRAY[job.lease]);
    END IF;
    PERFORM windrow_dialect.settle(work);
    RETURN true;
END
$$;

-- An active job goes back to wait until `run_at`. It ends instead if it was asked to, or if a follower
-- waits for its place. Returns the state it is in then; null if it was not active.
CREATE OR REPLACE FUNCTION windrow_dialect.return_job(
    job_id uuid, run_at timestamptz, error text DEFAULT NULL, uses_attempt boolean DEFAULT false)
RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(job_id);
    due CONSTANT timestamptz := $2;
    delay CONSTANT double precision :=
        greatest(date_part('epoch', $2 - statement_timestamp()), 0);
    went jsonb;
BEGIN
    IF job.id IS NULL OR job.state <> 'active' THEN
        RETURN NULL;
    END IF;
    SELECT one INTO went
      FROM windrow_dialect.return_jobs(
               ids => ARRAY[job_id], tokens => ARRAY[job.lease], delays => ARRAY[delay],
               errors => ARRAY[windrow_dialect.short_error($3)], uses_attempts => ARRAY[$4]) AS one;
    IF $3 IS NOT NULL THEN
        PERFORM windrow_dialect.note_error(job_id, 'attempt', $3);
    END IF;
    IF went ->> 'state' IS NULL THEN
        PERFORM windrow_dialect.finish_job(
            job_id, 'cancelled',
            CASE WHEN went ->> 'stop_as' = 'cancelled' THEN coalesce(job.error, 'cancelled')
                 ELSE 'replaced by job ' || (went ->> 'follower_id') END,
            uses_attempt => $4);
        RETURN 'cancelled';
    END IF;
    UPDATE windrow.job_live SET run_at = due WHERE id = job_id;
    PERFORM windrow_dialect.delete_leases(tokens => ARRAY[job.lease]);
    RETURN went ->> 'state';
END
$$;

-- An active job whose lease is over: the crash is counted, and it waits again, or has failed when it
-- crashed too often. Returns the state it is in then; null if its lease is not over.
CREATE OR REPLACE FUNCTION windrow_dialect.rescue_job(job_id uuid) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(job_id);
    holder text;
    crashed CONSTANT integer := job.crashes + 1;
BEGIN
    IF job.id IS NULL OR job.state <> 'active' THEN
        RETURN NULL;
    END IF;
    SELECT worker INTO holder
      FROM windrow.lease
     WHERE token = job.lease AND expires_at > statement_timestamp() FOR UPDATE;
    IF FOUND THEN
        RETURN NULL;
    END IF;
    SELECT worker INTO holder FROM windrow.lease WHERE token = job.lease;
    PERFORM windrow_dialect.note_error(
        job_id, 'crash', format('the lease ran out (worker %s)', coalesce(holder, 'unknown')));
    UPDATE windrow.job_live SET crashes = crashed WHERE id = job_id;
    IF crashed >= job.max_crashes AND job.stop_as IS DISTINCT FROM 'cancelled' THEN
        PERFORM windrow_dialect.finish_job(
            job_id, 'failed', format('crashed %s times: the lease ran out', crashed),
            is_noted => false);
        UPDATE windrow.job_finished SET lease = NULL WHERE id = job_id;
        RETURN 'failed';
    END IF;
    RETURN windrow_dialect.forget_lease(job_id, windrow_dialect.return_job(
               job_id, statement_timestamp()));
END
$$;

-- A rescued job has no lease any more, so that nothing of its last run is taken for a repetition.
CREATE OR REPLACE FUNCTION windrow_dialect.forget_lease(job_id uuid, state text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE windrow.job_live SET lease = NULL WHERE id = job_id;
    RETURN state;
END
$$;

-- Remove a job without a trace. One that runs is ended first: whoever runs it finds it lost.
CREATE OR REPLACE FUNCTION windrow_dialect.delete_job(job_id uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(job_id);
    gone jsonb;
    work jsonb := windrow_dialect.no_work();
BEGIN
    IF job.state IN ('active', 'waiting') THEN
        PERFORM windrow_dialect.finish_job(job_id, 'cancelled', 'deleted');
    END IF;
    SELECT one INTO gone FROM windrow_dialect.delete_jobs(ids => ARRAY[job_id]) AS one;
    IF gone IS NULL THEN
        RETURN false;
    END IF;
    IF gone ->> 'unique_key' IS NOT NULL THEN
        work := windrow_dialect.noted(work, 'keys', gone -> 'unique_key');
    END IF;
    IF gone ->> 'group_id' IS NOT NULL THEN
        work := windrow_dialect.noted(work, 'deltas', windrow_dialect.delta(
            (gone ->> 'group_id')::uuid,
            pending => -(gone ->> 'before' NOT IN ('completed', 'failed', 'cancelled'))::integer,
            completed => -(gone ->> 'before' = 'completed')::integer,
            failed => -(gone ->> 'before' = 'failed')::integer,
            cancelled => -(gone ->> 'before' = 'cancelled')::integer));
    END IF;
    PERFORM windrow_dialect.settle(work);
    IF gone ->> 'hash' IS NOT NULL THEN
        PERFORM windrow_dialect.lock_blobs(hashes => ARRAY[(gone ->> 'hash')::bytea]);
        PERFORM windrow_dialect.delete_blobs(hashes => ARRAY[(gone ->> 'hash')::bytea]);
    END IF;
    RETURN true;
END
$$;

-- An unclaimed job is due at `due`: ready then or scheduled. One that is held or paused stays so.
CREATE OR REPLACE FUNCTION windrow_dialect.schedule_job(job_id uuid, due timestamptz)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(job_id);
    after CONSTANT text := CASE WHEN job.state NOT IN ('ready', 'scheduled') THEN job.state
                                WHEN due > statement_timestamp() THEN 'scheduled'
                                WHEN job.state = 'ready' OR job.limit_keys IS NULL THEN 'ready'
                                ELSE 'held' END;
BEGIN
    IF job.id IS NULL OR job.state IN ('active', 'waiting') THEN
        RETURN false;
    END IF;
    UPDATE windrow.job_live SET run_at = due, state = after WHERE id = job_id;
    PERFORM windrow_dialect.count_move(job.queue, job.state, after);
    RETURN true;
END
$$;

-- A failed or cancelled job is ready again, as if it had not run. False if it is not one of them, or if
-- its unique key is taken.
CREATE OR REPLACE FUNCTION windrow_dialect.retry_job(job_id uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    retried jsonb;
BEGIN
    PERFORM windrow_dialect.lock_finished(ids => ARRAY[job_id]);
    SELECT one INTO retried FROM windrow_dialect.retry_jobs(ids => ARRAY[job_id]) AS one;
    IF retried IS NULL THEN
        RETURN false;
    END IF;
    IF retried ->> 'group_id' IS NOT NULL THEN
        PERFORM windrow_dialect.settle(windrow_dialect.noted(
            windrow_dialect.no_work(), 'deltas', windrow_dialect.delta(
                (retried ->> 'group_id')::uuid, pending => 1,
                failed => -(retried ->> 'before' = 'failed')::integer,
                cancelled => -(retried ->> 'before' = 'cancelled')::integer)));
    END IF;
    RETURN true;
END
$$;

-- Whether a job may be claimed now: its queue and its group are not paused, no limit of it is parked.
CREATE OR REPLACE FUNCTION windrow_dialect.may_start(job windrow.job_live) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM windrow.queue WHERE name = job.queue AND is_paused)
       AND NOT EXISTS (SELECT FROM windrow.job_group WHERE id = job.group_id AND is_paused)
       AND NOT EXISTS (SELECT FROM windrow.job_limit
                        WHERE key = ANY (job.limit_keys) AND parked_until > statement_timestamp())
$$;

-- An unclaimed job is set aside. Whether it is now.
CREATE OR REPLACE FUNCTION windrow_dialect.set_aside(job_id uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(job_id);
BEGIN
    IF job.id IS NULL OR job.state NOT IN ('ready', 'scheduled', 'held', 'paused') THEN
        RETURN false;
    END IF;
    UPDATE windrow.job_live SET state = 'paused' WHERE id = job_id;
    PERFORM windrow_dialect.count_move(job.queue, job.state, 'paused');
    RETURN true;
END
$$;

-- A job that was set aside, or is not due yet, waits to be claimed now. Whether it does: not while it
-- waits for its limits or for the one it follows.
CREATE OR REPLACE FUNCTION windrow_dialect.make_ready(job_id uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(job_id);
    after CONSTANT text := CASE WHEN job.is_follower OR job.limit_keys IS NOT NULL THEN 'held'
                                ELSE 'ready' END;
BEGIN
    IF job.id IS NULL OR job.state NOT IN ('ready', 'scheduled', 'paused') THEN
        RETURN false;
    END IF;
    UPDATE windrow.job_live
       SET state = after, run_at = least(run_at, statement_timestamp())
     WHERE id = job_id;
    PERFORM windrow_dialect.count_move(job.queue, job.state, after);
    RETURN after = 'ready';
END
$$;

-- How far a job is, in percent. It never goes back.
CREATE OR REPLACE FUNCTION windrow_dialect.put_progress(job_id uuid, percent integer) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    job CONSTANT windrow.job_live := windrow_dialect.lock_job(job_id);
    given CONSTANT integer := least(greatest(coalesce($2, 0), 0), 100);
    written integer;
BEGIN
    IF given = 0 THEN
        RETURN;
    END IF;
    INSERT INTO windrow.job_progress AS progress (id, updated_at, percent, counters)
    VALUES (job_id, statement_timestamp(), given, '{}')
        ON CONFLICT (id) DO UPDATE
       SET updated_at = excluded.updated_at, percent = excluded.percent
     WHERE progress.percent < excluded.percent
    RETURNING percent INTO written;
    IF written IS NOT NULL AND job.state = 'active' THEN
        INSERT INTO windrow.event_draft (at, type, state, queue, kind, tenant, group_id, job_ids,
                                         details)
        VALUES (statement_timestamp(), 'job.progress', 'active', job.queue, job.kind, job.tenant,
                job.group_id, ARRAY[job_id], json_build_object('percent', written));
    END IF;
END
$$;

-- A finished job as if it had ended at that time: it is kept for as long from then on.
CREATE OR REPLACE FUNCTION windrow_dialect.set_finished_at(job_id uuid, at timestamptz)
RETURNS void LANGUAGE sql AS $$
    UPDATE windrow.job_finished AS job
       SET finished_at = at,
           expires_at = job.expires_at + (at - job.finished_at),
           -- A leaf of the ring is emptied by the clock, so only what ended about now may lie there.
           leaf = CASE WHEN at BETWEEN job.finished_at - interval '1 minute' AND job.finished_at
                       THEN job.leaf ELSE 0 END
     WHERE job.id = job_id AND at IS DISTINCT FROM job.finished_at AND at IS NOT NULL
$$;

-- Where no Windrow worker is alive to look after time: what is due becomes ready, and what was abandoned
-- a minute ago is rescued, in one queue. The minute is for a dialect that has a reaper of its own.
CREATE OR REPLACE FUNCTION windrow_dialect.tend_queue(name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    job_id uuid;
BEGIN
    IF windrow.session_tenant() IS NOT NULL THEN  -- a tenant looks after nobody
        RETURN;
    ELSIF EXISTS (SELECT FROM windrow.worker WHERE expires_at > statement_timestamp()) THEN
        RETURN;
    END IF;
    FOR job_id IN
        SELECT id FROM windrow.job_live
         WHERE state = 'scheduled' AND run_at <= statement_timestamp() AND queue = name
         ORDER BY run_at LIMIT 100 FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM windrow_dialect.make_ready(job_id);
    END LOOP;
    FOR job_id IN
        SELECT job.id
          FROM (SELECT token, job_ids FROM windrow.lease
                 WHERE expires_at <= statement_timestamp() - interval '1 minute'
                 ORDER BY expires_at LIMIT 100) AS expired
         CROSS JOIN LATERAL (
               SELECT live.id FROM windrow.job_live AS live
                WHERE live.id = ANY (expired.job_ids) AND live.lease = expired.token
                  AND live.state = 'active' AND live.queue = name
                  FOR UPDATE SKIP LOCKED) AS job
    LOOP
        PERFORM windrow_dialect.rescue_job(job_id);
    END LOOP;
END
$$;
