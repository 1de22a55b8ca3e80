-- Contents by id.
-- takes ids uuid[]
-- gives content
SELECT {columns content}
  FROM windrow.content AS content
 WHERE id {in ids}
 ORDER BY id
