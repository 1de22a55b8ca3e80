-- Forget a schedule; the jobs it has fired stay. :name. Returns name.
DELETE FROM windrow.schedule WHERE name = :name::text RETURNING name
