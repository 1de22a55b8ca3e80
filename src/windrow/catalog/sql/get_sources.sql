-- Sources by id, of one tenant or (null) of any.
-- takes tenant text, ids text[]
-- gives source
SELECT {columns source}
  FROM windrow.source AS source
 WHERE id {in ids} AND (:tenant IS NULL OR tenant = :tenant)
 ORDER BY tenant, id
