-- Undo enable.sql. Which role belongs to which tenant is kept, and so are the roles, which other
-- databases may use. Views go on to show what their reader may see.

DO $$
DECLARE
    found record;
    had record;
BEGIN
    FOR found IN SELECT oid, relname::text AS name FROM pg_class
                  WHERE relnamespace = 'windrow'::regnamespace AND relkind IN ('r', 'p')
                  ORDER BY relname LOOP
        FOR had IN SELECT polname FROM pg_policy
                    WHERE polrelid = found.oid AND polname LIKE 'windrow\_%' LOOP
            EXECUTE format('DROP POLICY %I ON windrow.%I', had.polname, found.name);
        END LOOP;
        EXECUTE format('ALTER TABLE windrow.%I DISABLE ROW LEVEL SECURITY', found.name);
        EXECUTE format('REVOKE ALL ON windrow.%I FROM windrow_worker, windrow_tenant, windrow_api, '
                       'windrow_enqueuer, windrow_gate', found.name);
    END LOOP;
    FOR found IN SELECT oid::regprocedure::text AS name FROM pg_proc
                  WHERE pronamespace = 'windrow'::regnamespace LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM windrow_worker, windrow_tenant, '
                       'windrow_enqueuer, windrow_gate', found.name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', found.name);
    END LOOP;
END $$;

-- The functions behind dialects are again what they were made as.
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT oid::regprocedure::text AS name FROM pg_proc
         WHERE proowner = 'windrow_gate'::regrole
           AND pronamespace <> 'windrow_gate'::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO CURRENT_USER', found.name);
        EXECUTE format('ALTER FUNCTION %s SECURITY INVOKER', found.name);
        EXECUTE format('ALTER FUNCTION %s RESET search_path', found.name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', found.name);
    END LOOP;
    FOR found IN SELECT DISTINCT tgfoid::regprocedure::text AS name
                   FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
                  WHERE relnamespace = 'windrow'::regnamespace AND tgdeferrable AND NOT tgisinternal
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY INVOKER RESET search_path', found.name);
    END LOOP;
END $$;

DROP SCHEMA IF EXISTS windrow_gate CASCADE;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA windrow FROM windrow_worker, windrow_gate;
REVOKE ALL ON SCHEMA windrow FROM windrow_worker, windrow_tenant, windrow_enqueuer, windrow_gate;
