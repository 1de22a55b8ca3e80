-- What lies around the tables: triggers, and views, those of dialects and of anybody else: whoever reads through one sees what
-- their own role sees. Through views of views as well, where one that is not so would lend its owner's
-- eyes to those beneath it.
--
-- Dialects are written to by INSTEAD OF triggers. The functions of their triggers get rights of the gate,
-- within which row-level security holds; so tenants may write through the view and need no right to a table.
DO $$
DECLARE
    found record;
    done record;
BEGIN
    -- Triggers that wait for the commit run as whoever commits, who may see neither sleepers nor events.
    FOR found IN SELECT DISTINCT tgfoid::regprocedure::text AS name
                   FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
                  WHERE relnamespace = 'windrow'::regnamespace AND tgdeferrable AND NOT tgisinternal
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp',
                       found.name);
    END LOOP;
    FOR found IN
        WITH RECURSIVE above AS (
            SELECT oid FROM pg_class WHERE relnamespace = 'windrow'::regnamespace
            UNION
            SELECT rule.ev_class
              FROM above
              JOIN pg_depend AS needs ON needs.refobjid = above.oid
                                     AND needs.refclassid = 'pg_class'::regclass
                                     AND needs.classid = 'pg_rewrite'::regclass
              JOIN pg_rewrite AS rule ON rule.oid = needs.objid
        )
        SELECT c.oid, c.oid::regclass::text AS name, c.relnamespace::regnamespace::text AS schema,
               coalesce('security_invoker=true' = ANY (c.reloptions), false) AS is_secured
          FROM above JOIN pg_class AS c USING (oid)
         WHERE c.relkind = 'v'
    LOOP
        IF NOT found.is_secured THEN
            EXECUTE format('ALTER VIEW %s SET (security_invoker = true)', found.name);
        END IF;
        CONTINUE WHEN found.schema = 'windrow_dialect'
                   OR NOT EXISTS (SELECT FROM pg_trigger
                                   WHERE tgrelid = found.oid AND tgtype & 64 <> 0);
        EXECUTE format('GRANT USAGE ON SCHEMA %s TO windrow_worker, windrow_tenant, '
                       'windrow_enqueuer, windrow_gate', found.schema);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO windrow_worker, windrow_tenant',
                       found.name);
        -- A trigger looks whether the row is still what its statement saw.
        EXECUTE format('GRANT SELECT ON %s TO windrow_gate', found.name);
        EXECUTE format('GRANT INSERT ON %s TO windrow_enqueuer', found.name);
    END LOOP;
    FOR done IN
        SELECT oid::regprocedure::text AS name, pronamespace::regnamespace::text AS schema
          FROM pg_proc
         WHERE oid IN (SELECT tgfoid FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
                        WHERE relkind = 'v' AND relnamespace <> to_regnamespace('windrow_dialect')
                          AND has_table_privilege('windrow_tenant', tgrelid, 'INSERT'))
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER', done.name);
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', done.name);
        EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %s TO windrow_gate', done.schema);
        EXECUTE format('ALTER FUNCTION %s OWNER TO windrow_gate', done.name);
        EXECUTE format('REVOKE CREATE ON SCHEMA %s FROM windrow_gate', done.schema);
        -- Nobody makes triggers of their own with these.
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', done.name);
    END LOOP;
    IF to_regnamespace('pgmq') IS NOT NULL THEN
        -- Which queues there are, and what else it keeps of each; no message is in these.
        GRANT USAGE ON SCHEMA pgmq TO windrow_worker, windrow_tenant, windrow_enqueuer, windrow_gate;
        FOR done IN SELECT oid::regclass::text AS name FROM pg_class
                     WHERE relnamespace = to_regnamespace('pgmq') AND relkind IN ('r', 'p') LOOP
            EXECUTE format('GRANT ALL ON %s TO windrow_worker, windrow_gate', done.name);
        END LOOP;
        FOR done IN SELECT oid::regclass::text AS name FROM pg_class
                     WHERE relnamespace = 'windrow'::regnamespace AND relkind = 'S'
                       AND relname LIKE '#%' LOOP
            EXECUTE format('GRANT SELECT, USAGE ON SEQUENCE %s TO windrow_worker, windrow_gate',
                           done.name);
        END LOOP;
    END IF;
    IF EXISTS (SELECT FROM pg_class
                WHERE oid = to_regclass('webhook.crawl_sessions') AND relkind = 'v') THEN
        -- A view of the dialect `nuq` that takes no writes, so that it has no trigger.
        GRANT USAGE ON SCHEMA webhook TO windrow_worker, windrow_tenant;
        GRANT SELECT ON webhook.crawl_sessions TO windrow_worker, windrow_tenant;
    END IF;
    IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'windrow_dialect') THEN
        -- What views compute their columns with; none of it can do more than whoever calls it.
        GRANT USAGE ON SCHEMA windrow_dialect
            TO windrow_worker, windrow_tenant, windrow_enqueuer, windrow_gate;
        GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA windrow_dialect TO windrow_worker, windrow_gate;
    END IF;
END $$;
