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
CREATE FUNCTION windrow.session_access() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN NOT relrowsecurity OR pg_has_role(windrow.acting_role(), relowner, 'USAGE')
             OR (SELECT rolbypassrls FROM pg_roles WHERE rolname = windrow.acting_role())
             OR EXISTS (SELECT FROM pg_roles WHERE rolname = 'windrow_worker'
                           AND pg_has_role(windrow.acting_role(), oid, 'USAGE')) THEN 'all'
        WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = 'windrow_tenant'
                        AND pg_has_role(windrow.acting_role(), oid, 'USAGE')) THEN 'tenant'
        WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = 'windrow_enqueuer'
                        AND pg_has_role(windrow.acting_role(), oid, 'USAGE')) THEN 'enqueue'
        ELSE 'nothing' END
      FROM pg_class WHERE oid = 'windrow.job'::regclass
$$;
