-- Sources by their ids, or all of a tenant. :tenant; :ids, or null.
DELETE FROM windrow.source
 WHERE tenant = :tenant::text AND (:ids::text[] IS NULL OR id = ANY (:ids))
RETURNING id
