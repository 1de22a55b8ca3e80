-- One schedule, to be changed in the same transaction.
-- :name
SELECT * FROM windrow_schedule WHERE name = :name
