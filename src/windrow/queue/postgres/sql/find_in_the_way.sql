-- Documents that are where others are to be moved to. :rows, JSON with id and uri. Returns id.
SELECT there.id
  FROM json_to_recordset(:rows::text::json) AS given(id uuid, uri text)
  JOIN windrow.document AS moved ON moved.id = given.id
  JOIN windrow.document AS there
    ON there.tenant = moved.tenant AND there.collection = moved.collection
   AND there.source = moved.source AND there.uri = given.uri AND there.branch = moved.branch
 WHERE there.id NOT IN (SELECT id FROM json_to_recordset(:rows::text::json) AS others(id uuid))
