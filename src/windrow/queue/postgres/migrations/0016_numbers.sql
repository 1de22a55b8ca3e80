-- The number of a job in its own queue, where a dialect counts queue by queue; null for all others. It
-- goes with the job from state to state. docs/decisions/0013-numbers.md says why it is a column.
ALTER TABLE windrow.job ADD COLUMN number bigint;

-- What the session may do, asked with every message that is sent: as one plan kept by the session, where
-- one in SQL was planned at each call.
CREATE OR REPLACE FUNCTION windrow.session_access() RETURNS text LANGUAGE plpgsql STABLE
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
