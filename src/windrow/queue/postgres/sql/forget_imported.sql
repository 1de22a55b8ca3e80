-- Rows that may be taken in again. :origin, :keys.
DELETE FROM windrow.imported WHERE origin = :origin::text AND key = ANY (:keys::text[])
