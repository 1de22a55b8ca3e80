-- Give documents temporary unique addresses, so that a batch of moves cannot collide. `mark` is a
-- character that no address begins with.
-- takes moves (id uuid), mark text
-- gate tenant
UPDATE windrow.document SET uri = :mark || id
 WHERE id IN (SELECT id FROM {rows moves})
