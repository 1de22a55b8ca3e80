-- The newest calls first. :tenant (null: of all tenants), :status (null: any), :limit.
SELECT id, tenant, collection, name, status, error, seconds, note, analysis, analysed_from, created_at
  FROM windrow_call
 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:status IS NULL OR status = :status)
 ORDER BY created_at DESC, id
 LIMIT :limit
