-- Delete a credential.
-- takes tenant tenant, name text
-- gives name text
DELETE FROM windrow.credential WHERE tenant = :tenant AND name = :name RETURNING name
