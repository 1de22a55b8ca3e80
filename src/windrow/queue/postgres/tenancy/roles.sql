-- The roles that row-level security knows, where they are missing. They belong to the whole server,
-- log in nowhere, and are granted to those who do. Another database may be making them just now.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['windrow_worker', 'windrow_tenant', 'windrow_api',
                                  'windrow_enqueuer', 'windrow_gate'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;  -- the other one was faster
            END;
        END IF;
    END LOOP;
    IF NOT pg_has_role('windrow_api', 'windrow_tenant', 'MEMBER') THEN
        BEGIN
            GRANT windrow_tenant TO windrow_api;
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END IF;
    -- Functions are given to a role only by one of its members; and the owner may act for tenants.
    FOREACH wanted IN ARRAY ARRAY['windrow_gate', 'windrow_api'] LOOP
        IF NOT pg_has_role(wanted, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO %I', wanted, current_user);
        END IF;
    END LOOP;
END $$;
