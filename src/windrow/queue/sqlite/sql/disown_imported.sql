-- Rows whose jobs were here before, or came by another row: they are not to be removed with these.
-- :origin :keys (json array)
UPDATE windrow_imported SET job_id = NULL
WHERE origin = :origin AND key IN (SELECT value FROM json_each(:keys))
