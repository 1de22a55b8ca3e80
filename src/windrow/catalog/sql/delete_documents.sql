-- Delete documents by id.
-- takes ids uuid[]
-- gives id uuid
-- gate tenant
DELETE FROM windrow.document WHERE id {in ids} RETURNING id
