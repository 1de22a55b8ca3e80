-- These documents. :ids. Returns id.
DELETE FROM windrow.document WHERE id = ANY (:ids::uuid[]) RETURNING id
