-- Documents that are to be moved, out of each other's way. :rows, JSON with id.
UPDATE windrow_document SET uri = char(1) || id
 WHERE id IN (SELECT value ->> 'id' FROM json_each(:rows))
