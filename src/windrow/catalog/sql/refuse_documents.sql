-- Record why the index refuses contents: their documents go on waiting for them. What else the
-- documents are found by stays.
-- takes contents (id uuid, why text)
UPDATE windrow.document AS document
   SET pending = contents.id, content = nullif(document.content, contents.id),
       skipped = contents.why
  FROM {rows contents}
 WHERE document.pending = contents.id
    OR (document.content = contents.id AND document.pending IS NULL)
