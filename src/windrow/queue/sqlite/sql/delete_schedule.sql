-- Forget a schedule; the jobs it has fired stay.
-- :name
-- Returns name.
DELETE FROM windrow_schedule WHERE name = :name RETURNING name
