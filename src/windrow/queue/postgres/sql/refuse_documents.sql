-- Documents whose text the index does not take wait for it, and say why; what else they are found by
-- stays. :rows, JSON with id, why.
UPDATE windrow.document
   SET pending = given.id, content = nullif(document.content, given.id), skipped = given.why
  FROM json_to_recordset(:rows::text::json) AS given(id uuid, why text)
 WHERE document.pending = given.id OR (document.content = given.id AND document.pending IS NULL)
