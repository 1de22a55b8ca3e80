-- Forget an API key.
-- :name
DELETE FROM windrow_api_key WHERE name = :name
