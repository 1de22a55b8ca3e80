-- Record that contents are not in the index any more. Null stands for all tenants, for any
-- collection and for all ids.
-- takes tenant text, collection text, ids uuid[]
UPDATE windrow.content SET space = NULL
 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:collection IS NULL OR collection = :collection)
   AND (:ids IS NULL OR id {in ids})
