-- Calls by their ids. :tenant (null: of whichever tenant), :ids.
SELECT id, tenant, collection, name, status, error, seconds, note, analysis, analysed_from, created_at
  FROM windrow.call
 WHERE id = ANY (:ids::uuid[]) AND (:tenant::text IS NULL OR tenant = :tenant)
 ORDER BY id
