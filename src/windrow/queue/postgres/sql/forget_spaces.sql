-- Texts whose chunks are not in the index any more. :tenant (null: of all), :collection (null:
-- any), :ids (null: all).
UPDATE windrow.content SET space = NULL
 WHERE (:tenant::text IS NULL OR tenant = :tenant)
   AND (:collection::text IS NULL OR collection = :collection)
   AND (:ids::uuid[] IS NULL OR id = ANY (:ids))
