-- Documents that are to be moved, out of each other's way. :rows, JSON with id.
UPDATE windrow.document SET uri = chr(1) || id
 WHERE id IN (SELECT id FROM json_to_recordset(:rows::text::json) AS given(id uuid))
