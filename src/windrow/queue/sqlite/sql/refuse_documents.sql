-- Documents whose text the index does not take wait for it, and say why; what else they are found by
-- stays. :rows, JSON with id, why.
UPDATE windrow_document
   SET pending = value ->> 'id', content = nullif(content, value ->> 'id'), skipped = value ->> 'why'
  FROM json_each(:rows)
 WHERE pending = value ->> 'id' OR (content = value ->> 'id' AND pending IS NULL)
