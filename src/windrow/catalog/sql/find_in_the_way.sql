-- The documents at the places that others are to be moved to.
-- takes moves (id uuid, uri text, title text)
-- gives id uuid
SELECT there.id
  FROM {rows moves}
  JOIN windrow.document AS moved ON moved.id = moves.id
  JOIN windrow.document AS there
    ON there.tenant = moved.tenant AND there.collection = moved.collection
   AND there.source = moved.source AND there.uri = moves.uri AND there.branch = moved.branch
 WHERE there.id NOT IN (SELECT id FROM {rows moves})
