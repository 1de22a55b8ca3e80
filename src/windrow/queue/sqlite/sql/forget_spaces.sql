-- Texts whose chunks are not in the index any more. :tenant (null: of all), :collection (null:
-- any), :ids (null: all).
UPDATE windrow_content SET space = NULL
 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:collection IS NULL OR collection = :collection)
   AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
