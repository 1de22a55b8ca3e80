-- Delete sources by id, or (null) all of a tenant.
-- takes tenant tenant, ids text[]
-- gives id text
-- gate tenant
DELETE FROM windrow.source
 WHERE tenant = :tenant AND (:ids IS NULL OR id {in ids})
RETURNING id
