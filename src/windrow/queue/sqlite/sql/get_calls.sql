-- Calls by their ids. :tenant (null: of whichever tenant), :ids.
SELECT id, tenant, collection, name, status, error, seconds, note, analysis, analysed_from, created_at
  FROM windrow_call
 WHERE id IN (SELECT value FROM json_each(:ids)) AND (:tenant IS NULL OR tenant = :tenant)
 ORDER BY id
