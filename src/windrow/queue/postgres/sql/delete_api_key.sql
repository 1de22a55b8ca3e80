-- Forget an API key. :name. Returns name if it was there.
DELETE FROM windrow.api_key WHERE name = :name::text RETURNING name
