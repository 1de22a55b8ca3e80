-- The newest calls first. Null stands for all tenants and for any status.
-- takes tenant text, status text, limit int
-- gives call
SELECT {columns call}
  FROM windrow.call AS call
 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:status IS NULL OR status = :status)
 ORDER BY created_at DESC, id
 LIMIT :limit
