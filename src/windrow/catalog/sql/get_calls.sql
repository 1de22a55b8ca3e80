-- Calls by id, of one tenant or (null) of any.
-- takes tenant text, ids uuid[]
-- gives call
SELECT {columns call}
  FROM windrow.call AS call
 WHERE id {in ids} AND (:tenant IS NULL OR tenant = :tenant)
 ORDER BY id
