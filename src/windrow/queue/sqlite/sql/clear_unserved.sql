-- Somebody asks for jobs: their lanes are served.
-- :queues :kinds :tenants (json arrays or null for all)
DELETE FROM windrow_unserved
WHERE (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
  AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
  AND (:tenants IS NULL OR tenant IN (SELECT value FROM json_each(:tenants)))
