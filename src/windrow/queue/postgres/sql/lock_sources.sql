-- Sources that are about to be removed, by their ids, or all of a tenant: who puts documents into one
-- is waited for, so that these go with it. :tenant; :ids, or null.
SELECT id FROM windrow.source
 WHERE tenant = :tenant::text AND (:ids::text[] IS NULL OR id = ANY (:ids))
 ORDER BY tenant, id
   FOR UPDATE
