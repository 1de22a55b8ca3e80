-- What lets tenants past the policies: views that see with their owner's eyes, roles that belong to a
-- tenant and may become more than that. Returns problem.
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
SELECT 'view ' || c.oid::regclass || ' is not security_invoker' AS problem
  FROM above JOIN pg_class AS c USING (oid)
 WHERE c.relkind = 'v' AND NOT coalesce('security_invoker=true' = ANY (c.reloptions), false)
 UNION ALL
SELECT 'materialized view ' || c.oid::regclass || ' keeps rows of all tenants'
  FROM above JOIN pg_class AS c USING (oid)
 WHERE c.relkind = 'm'
 UNION ALL
SELECT 'role ' || mapped.role || ' belongs to a tenant and is also a member of ' || other.rolname
  FROM windrow.tenant_role AS mapped
  JOIN pg_roles AS own ON own.rolname = mapped.role AND NOT own.rolsuper
  JOIN pg_roles AS other
    ON other.rolname IN ('windrow_api', 'windrow_worker', 'windrow_gate')
   AND pg_has_role(own.oid, other.oid, 'MEMBER')
 UNION ALL
SELECT 'role ' || mapped.role || ' belongs to a tenant and bypasses row-level security'
  FROM windrow.tenant_role AS mapped
  JOIN pg_roles AS own ON own.rolname = mapped.role AND (own.rolsuper OR own.rolbypassrls)
 UNION ALL
SELECT 'role ' || mapped.role || ' belongs to a tenant but does not exist'
  FROM windrow.tenant_role AS mapped
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = mapped.role)
