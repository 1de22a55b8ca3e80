-- What documents let go of when what is pending becomes searchable. :rows, JSON with id; :now.
UPDATE windrow_content SET dropped_at = :now
 WHERE id IN (SELECT content FROM windrow_document
               WHERE pending IN (SELECT value ->> 'id' FROM json_each(:rows))
                 AND content <> pending)
