-- Row-level security over everything in the schema, made anew from what is there now: tables and
-- leaves that a migration has added, too. Run in one transaction by the owner of the tables.

CREATE SCHEMA IF NOT EXISTS windrow_gate;
REVOKE ALL ON SCHEMA windrow, windrow_gate FROM PUBLIC;

-- Whether whoever calls a function of the gate sees the rows of every tenant. Asked in every statement
-- of a dialect, also by workers, so it is made to be fast: no query, and not as somebody else.
DO $make$
BEGIN
    EXECUTE format($text$
        CREATE OR REPLACE FUNCTION windrow_gate.sees_all() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
        DECLARE
            set_role CONSTANT text := pg_catalog.current_setting('role');
            who CONSTANT name := CASE set_role WHEN 'none' THEN session_user ELSE set_role END;
        BEGIN
            RETURN pg_catalog.pg_has_role(who, 'windrow_worker', 'USAGE')
                   OR pg_catalog.pg_has_role(who, %L, 'USAGE')
                   OR (SELECT rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = who);
        END
        $$ $text$, (SELECT relowner::regrole::text FROM pg_class WHERE oid = 'windrow.job'::regclass));
END $make$;

-- The same, or may enqueue for every tenant, which takes a look at those who hold unique keys.
CREATE OR REPLACE FUNCTION windrow_gate.is_open() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE windrow.session_access()
           WHEN 'all' THEN true
           WHEN 'enqueue' THEN windrow.session_tenant() IS NULL
           ELSE false END
$$;

-- Whether a job or group is somebody else's. As the owner: the caller cannot see what is not its own.
CREATE OR REPLACE FUNCTION windrow_gate.is_foreign_job(wanted uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM windrow.job
                    WHERE id = wanted AND tenant IS DISTINCT FROM windrow.session_tenant())
$$;
CREATE OR REPLACE FUNCTION windrow_gate.is_foreign_group(wanted uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM windrow.job_group
                    WHERE id = wanted AND tenant IS DISTINCT FROM windrow.session_tenant())
$$;

-- Whether a job that is to be inserted later, by somebody who sees all, is one of the tenant's. A key
-- that is there twice, however it is spelled, could mean one thing here and another to its reader.
CREATE OR REPLACE FUNCTION windrow_gate.is_own_row(given json) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(*) = count(DISTINCT key)
           AND given ->> 'tenant' IS NOT DISTINCT FROM windrow.session_tenant()
           AND (given ->> 'group' IS NULL
                OR NOT windrow_gate.is_foreign_group((given ->> 'group')::uuid))
      FROM json_object_keys(given) AS key
$$;

DO $$
DECLARE
    -- Tables that only the owner and workers have anything to do with are in none of these.
    job_tables text[] := ARRAY['job', 'job_live', 'job_finished'];
    tenant_tables text[] := job_tables || ARRAY['job_group', 'event', 'event_draft'];
    side_tables text[] := ARRAY['job_payload', 'job_progress', 'job_error', 'job_step'];
    shared_tables text[] := ARRAY['tally', 'tally_told', 'queue', 'lease', 'job_limit', 'job_slot', 'unserved',
                                  'sleeper', 'waiter', 'event_reader', 'worker', 'channel'];
    told_tables text[] := ARRAY['migration', 'event_floor'];
    document_tables text[] := ARRAY['collection', 'source', 'document', 'content'];
    -- What tenants read. No leaf but job_live, which statements and views name.
    read_tables text[] := tenant_tables[1:5] || side_tables || told_tables
                          || ARRAY['blob', 'group_note'] || document_tables;
    mine constant text := 'tenant = (SELECT windrow.session_tenant())';
    opened constant text := '(SELECT windrow_gate.is_open())';
    sees_all constant text := '(SELECT windrow_gate.sees_all())';
    found record;
    had record;
    job_id text;
    refers text;
BEGIN
    FOR found IN
        SELECT c.oid, c.relname::text AS name, c.relrowsecurity AS is_secured,
               -- the table that it is a leaf of, or itself
               coalesce((SELECT relname::text FROM pg_class WHERE oid = pg_partition_root(c.oid)),
                        c.relname::text) AS root
          FROM pg_class AS c
         WHERE c.relnamespace = 'windrow'::regnamespace AND c.relkind IN ('r', 'p')
         ORDER BY c.relname
    LOOP
        FOR had IN SELECT polname FROM pg_policy
                    WHERE polrelid = found.oid AND polname LIKE 'windrow\_%' LOOP
            EXECUTE format('DROP POLICY %I ON windrow.%I', had.polname, found.name);
        END LOOP;
        IF NOT found.is_secured THEN
            EXECUTE format('ALTER TABLE windrow.%I ENABLE ROW LEVEL SECURITY', found.name);
        END IF;
        EXECUTE format('REVOKE ALL ON windrow.%I FROM PUBLIC, windrow_worker, windrow_tenant, '
                       'windrow_api, windrow_enqueuer, windrow_gate', found.name);

        -- Nothing is left of this in a plan: those who work see all, at no cost.
        EXECUTE format('CREATE POLICY windrow_work ON windrow.%I TO windrow_worker '
                       'USING (true) WITH CHECK (true)', found.name);
        IF found.name IN ('migration', 'tenant_role') THEN
            EXECUTE format('GRANT SELECT ON windrow.%I TO windrow_worker', found.name);
        ELSE
            EXECUTE format('GRANT ALL ON windrow.%I TO windrow_worker', found.name);
        END IF;
        IF found.name = ANY (read_tables) THEN
            EXECUTE format('GRANT SELECT ON windrow.%I TO windrow_tenant', found.name);
        END IF;
        IF found.name = 'lease' THEN
            -- Of a lease that has a job of theirs: not which others it has.
            GRANT SELECT (token, claimed_at, expires_at, seconds, worker) ON windrow.lease
                TO windrow_tenant;
            CREATE POLICY windrow_read ON windrow.lease FOR SELECT TO windrow_tenant USING (
                EXISTS (SELECT FROM windrow.job_live WHERE job_live.id = ANY (lease.job_ids)));
        END IF;
        -- Views of dialects ask what is paused and parked, of their own jobs: the name of a queue, or a
        -- key, may be the name of another tenant.
        IF found.name = 'queue' THEN
            GRANT SELECT (name, is_paused) ON windrow.queue TO windrow_tenant;
            CREATE POLICY windrow_read ON windrow.queue FOR SELECT TO windrow_tenant USING (
                EXISTS (SELECT FROM windrow.job_live WHERE job_live.queue = queue.name));
        ELSIF found.name = 'job_limit' THEN
            GRANT SELECT (key, parked_until) ON windrow.job_limit TO windrow_tenant;
            CREATE POLICY windrow_read ON windrow.job_limit FOR SELECT TO windrow_tenant USING (
                parked_until IS NOT NULL AND EXISTS (
                    SELECT FROM windrow.job_live WHERE job_limit.key = ANY (job_live.limit_keys)));
        END IF;
        IF found.root = ANY (tenant_tables || side_tables || shared_tables || told_tables
                             || ARRAY['blob', 'group_key', 'group_note'] || document_tables) THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON windrow.%I TO windrow_gate',
                           found.name);
        END IF;

        IF found.root = ANY (tenant_tables) THEN
            refers := CASE
                WHEN found.root = 'job' THEN
                    format('(%2$s AND %1$I.group_id IS NULL AND %1$I.root_of IS NULL) OR '
                           '(%3$s AND (%1$I.group_id IS NULL OR '
                           'NOT windrow_gate.is_foreign_group(%1$I.group_id)) '
                           'AND (%1$I.root_of IS NULL OR '
                           'NOT windrow_gate.is_foreign_group(%1$I.root_of)))',
                           found.name, opened, mine)
                WHEN found.root = 'job_group' THEN
                    format('(%s AND (root IS NULL OR NOT windrow_gate.is_foreign_job(root)) '
                           'AND (finish_job IS NULL OR windrow_gate.is_own_row(finish_job)))', mine)
                ELSE format('%s OR %s', opened, mine) END;
            EXECUTE format('CREATE POLICY windrow_read ON windrow.%I FOR SELECT TO windrow_tenant '
                           'USING (%s)', found.name, mine);
            EXECUTE format('CREATE POLICY windrow_pass ON windrow.%I TO windrow_gate '
                           'USING (%s OR %s) WITH CHECK (%s OR %s)', found.name,
                           CASE WHEN found.root = 'job_group' THEN sees_all
                                ELSE sees_all || ' OR ' || opened END,
                           mine, sees_all, refers);
        ELSIF found.name = ANY (side_tables) THEN
            job_id := CASE WHEN found.name IN ('job_error', 'job_step') THEN 'job_id' ELSE 'id' END;
            refers := format('EXISTS (SELECT FROM windrow.job WHERE job.id = %I.%I)',
                             found.name, job_id);
            EXECUTE format('CREATE POLICY windrow_read ON windrow.%I FOR SELECT TO windrow_tenant '
                           'USING (%s)', found.name, refers);
            -- A payload comes with its job, which this statement cannot see yet.
            EXECUTE format('CREATE POLICY windrow_pass ON windrow.%1$I TO windrow_gate '
                           'USING (%2$s OR %3$s) '
                           'WITH CHECK (%2$s OR NOT windrow_gate.is_foreign_job(%1$I.%4$I))',
                           found.name, sees_all || ' OR ' || opened, refers, job_id);
        ELSIF found.name = 'blob' THEN
            -- One blob may be the result of many tenants' jobs: a tenant removes none.
            refers := 'EXISTS (SELECT FROM windrow.job WHERE job.result_hash = blob.hash)';
            EXECUTE format('CREATE POLICY windrow_read ON windrow.blob FOR SELECT TO windrow_tenant '
                           'USING (%s)', refers);
            EXECUTE format('CREATE POLICY windrow_pass ON windrow.blob TO windrow_gate USING (%s)',
                           sees_all);
            EXECUTE format('CREATE POLICY windrow_pass_read ON windrow.blob FOR SELECT '
                           'TO windrow_gate USING (%s)', refers);
        ELSIF found.name = 'group_key' THEN
            -- Which keys there are is told by statements of the gate, about groups of the tenant's own.
            refers := 'EXISTS (SELECT FROM windrow.job_group WHERE job_group.id = group_key.group_id)';
            EXECUTE format('CREATE POLICY windrow_pass ON windrow.group_key TO windrow_gate '
                           'USING (%1$s OR %2$s) WITH CHECK (%1$s OR %2$s)', sees_all, refers);
        ELSIF found.name = 'group_note' THEN
            refers := 'EXISTS (SELECT FROM windrow.job_group WHERE job_group.id = group_note.group_id)';
            EXECUTE format('CREATE POLICY windrow_read ON windrow.group_note FOR SELECT '
                           'TO windrow_tenant USING (%s)', refers);
            EXECUTE format('CREATE POLICY windrow_pass ON windrow.group_note TO windrow_gate '
                           'USING (%1$s OR %2$s) WITH CHECK (%1$s OR %2$s)', sees_all, refers);
        ELSIF found.name = ANY (document_tables) THEN
            EXECUTE format('CREATE POLICY windrow_read ON windrow.%I FOR SELECT TO windrow_tenant '
                           'USING (%s)', found.name, mine);
            EXECUTE format('CREATE POLICY windrow_pass ON windrow.%I TO windrow_gate '
                           'USING (%2$s OR %3$s) WITH CHECK (%2$s OR %3$s)', found.name, sees_all,
                           mine);
        ELSIF found.name = ANY (shared_tables) THEN
            EXECUTE format('CREATE POLICY windrow_pass ON windrow.%I TO windrow_gate '
                           'USING (true) WITH CHECK (true)', found.name);
        ELSIF found.name = ANY (told_tables) THEN
            EXECUTE format('CREATE POLICY windrow_read ON windrow.%I FOR SELECT '
                           'TO windrow_tenant, windrow_enqueuer, windrow_gate USING (true)',
                           found.name);
        END IF;
    END LOOP;

    FOR found IN SELECT oid::regprocedure::text AS name FROM pg_proc
                  WHERE pronamespace IN ('windrow'::regnamespace, 'windrow_gate'::regnamespace) LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', found.name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO windrow_worker, windrow_gate', found.name);
    END LOOP;
END $$;

GRANT USAGE ON SCHEMA windrow TO windrow_worker, windrow_tenant, windrow_enqueuer, windrow_gate;
GRANT USAGE ON SCHEMA windrow_gate TO windrow_worker, windrow_tenant, windrow_enqueuer, windrow_gate;
GRANT CREATE ON SCHEMA windrow_gate TO windrow_gate;  -- who owns functions there must be allowed to
GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA windrow TO windrow_worker;
GRANT SELECT, USAGE ON SEQUENCE windrow.job_seq, windrow.event_seq TO windrow_gate;
GRANT SELECT ON windrow.migration TO windrow_enqueuer;
GRANT EXECUTE ON FUNCTION windrow.acting_role(), windrow.session_tenant(), windrow.session_access()
    TO windrow_tenant, windrow_enqueuer;
