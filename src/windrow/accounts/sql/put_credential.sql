-- Store a sealed credential, in place of one of the same name.
-- takes tenant tenant, name text, origin text, holds text[], sealed bytes
INSERT INTO windrow.credential (tenant, name, origin, holds, sealed, changed_at)
VALUES (:tenant, :name, :origin, :holds, :sealed, {now})
ON CONFLICT (tenant, name) DO UPDATE SET
    origin = excluded.origin, holds = excluded.holds, sealed = excluded.sealed,
    changed_at = excluded.changed_at
