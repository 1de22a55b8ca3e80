-- The credentials of a tenant, by name. :tenant (empty: those of none).
SELECT tenant, name, origin, holds, sealed, changed_at
  FROM windrow.credential
 WHERE tenant = :tenant::text
 ORDER BY name COLLATE "C"
