-- Rows whose jobs were here before, or came by another row: they are not to be removed with these.
-- :origin, :keys.
UPDATE windrow.imported SET job_id = NULL
 WHERE origin = :origin::text AND key = ANY (:keys::text[])
