-- Lock sources that are about to be deleted, by id or (null) all of a tenant: a transaction that
-- is putting documents into one is waited for, so that its documents are deleted too. SQLite has
-- one writer.
-- only postgres
-- takes tenant tenant, ids text[]
-- gate tenant
SELECT id FROM windrow.source
 WHERE tenant = :tenant AND (:ids IS NULL OR id {in ids})
 {lock tenant, id}
