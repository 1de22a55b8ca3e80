-- These documents. :ids. Returns id.
DELETE FROM windrow_document WHERE id IN (SELECT value FROM json_each(:ids)) RETURNING id
