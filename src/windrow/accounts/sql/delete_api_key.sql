-- Delete an API key.
-- takes name text
-- gives name text
DELETE FROM windrow.api_key WHERE name = :name RETURNING name
