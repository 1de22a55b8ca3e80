-- Mark contents as dropped that documents stop using when what is pending becomes searchable.
-- takes contents (id uuid)
UPDATE windrow.content SET dropped_at = {now}
 WHERE id IN (SELECT content FROM windrow.document
               WHERE pending IN (SELECT id FROM {rows contents}) AND content <> pending)
