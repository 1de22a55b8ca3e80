-- The credentials of a tenant, or of none, by name.
-- takes tenant tenant
-- gives tenant tenant, name text, origin text, holds text[], sealed bytes, changed_at time
SELECT tenant, name, origin, holds, sealed, changed_at
  FROM windrow.credential
 WHERE tenant = :tenant
 ORDER BY name {binary}
