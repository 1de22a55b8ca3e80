-- Sources by their ids, or all of a tenant. :tenant; :ids, or null.
DELETE FROM windrow_source
 WHERE tenant = :tenant AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))
RETURNING id
