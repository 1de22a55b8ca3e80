-- Views over the tables, those of dialects and of anybody else: whoever reads through one sees what
-- their own role sees. Through views of views as well, where one that is not so would lend its owner's
-- eyes to those beneath it.
--
-- Dialects are written to by INSTEAD OF triggers. Their functions get rights of the gate, within which
-- row-level security holds; so tenants may write through the view and need no right to a table.
DO $$
DECLARE
    found record;
    done record;
BEGIN
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
        EXECUTE format('GRANT INSERT ON %s TO windrow_enqueuer', found.name);
        -- A trigger looks whether the row is still what its statement saw.
        EXECUTE format('GRANT SELECT ON %s TO windrow_gate', found.name);
        FOR done IN
            SELECT DISTINCT tgfoid::regprocedure::text AS name,
                   (SELECT pronamespace::regnamespace::text FROM pg_proc WHERE oid = tgfoid) AS schema
              FROM pg_trigger WHERE tgrelid = found.oid AND tgtype & 64 <> 0
        LOOP
            EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER', done.name);
            EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', done.name);
            EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %s TO windrow_gate', done.schema);
            EXECUTE format('ALTER FUNCTION %s OWNER TO windrow_gate', done.name);
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', done.name);
            EXECUTE format('REVOKE CREATE ON SCHEMA %s FROM windrow_gate', done.schema);
        END LOOP;
    END LOOP;
    IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'windrow_dialect') THEN
        -- What views compute their columns with; none of it can do more than whoever calls it.
        GRANT USAGE ON SCHEMA windrow_dialect
            TO windrow_worker, windrow_tenant, windrow_enqueuer, windrow_gate;
        GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA windrow_dialect TO windrow_worker, windrow_gate;
    END IF;
END $$;
