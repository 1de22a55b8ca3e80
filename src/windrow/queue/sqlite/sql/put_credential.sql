-- Keep a credential, in the place of one of the same name.
-- :tenant (empty: none) :name :origin :holds (a JSON array) :sealed :now
INSERT INTO windrow_credential (tenant, name, origin, holds, sealed, changed_at)
VALUES (:tenant, :name, :origin, :holds, :sealed, :now)
ON CONFLICT (tenant, name) DO UPDATE SET
  origin = excluded.origin, holds = excluded.holds, sealed = excluded.sealed,
  changed_at = excluded.changed_at
