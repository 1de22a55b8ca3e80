-- Keep a credential, in the place of one of the same name.
-- :tenant (empty: none), :name, :origin, :holds, :sealed; :now or null. Returns nothing.
INSERT INTO windrow.credential (tenant, name, origin, holds, sealed, changed_at)
VALUES (:tenant::text, :name::text, :origin::text, :holds::text[], :sealed::bytea,
        coalesce(:now::timestamptz, statement_timestamp()))
    ON CONFLICT (tenant, name) DO UPDATE
   SET origin = excluded.origin, holds = excluded.holds, sealed = excluded.sealed,
       changed_at = excluded.changed_at
