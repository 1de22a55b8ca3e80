-- Rows that may be taken in again.
-- :origin :keys (json array)
DELETE FROM windrow_imported
WHERE origin = :origin AND key IN (SELECT value FROM json_each(:keys))
