-- Documents by id.
-- takes ids uuid[]
-- gives document
SELECT {columns document}
  FROM windrow.document AS document
 WHERE id {in ids}
