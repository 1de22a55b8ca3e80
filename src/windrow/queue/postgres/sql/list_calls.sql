-- The newest calls first. :tenant (null: of all tenants), :status (null: any), :limit.
SELECT id, tenant, collection, name, status, error, seconds, note, analysis, analysed_from, created_at
  FROM windrow.call
 WHERE (:tenant::text IS NULL OR tenant = :tenant) AND (:status::text IS NULL OR status = :status)
 ORDER BY created_at DESC, id
 LIMIT :limit
