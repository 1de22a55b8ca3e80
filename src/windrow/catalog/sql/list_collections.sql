-- Collections by tenant and name. Null stands for all tenants and for any name.
-- takes tenant text, name text
-- gives collection
-- short
SELECT {columns collection}
  FROM windrow.collection AS collection
 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:name IS NULL OR name = :name)
 ORDER BY tenant, name
