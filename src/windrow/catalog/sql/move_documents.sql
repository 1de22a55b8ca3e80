-- Move documents to other addresses; a null title stays as it was.
-- takes moves (id uuid, uri text, title text)
-- gives content uuid
-- gate tenant
UPDATE windrow.document AS document
   SET uri = moves.uri, title = coalesce(moves.title, document.title)
  FROM {rows moves}
 WHERE document.id = moves.id
RETURNING content
