-- Documents that are where others are to be moved to. :rows, JSON with id and uri. Returns id.
SELECT there.id
  FROM json_each(:rows) AS given
  JOIN windrow_document AS moved ON moved.id = given.value ->> 'id'
  JOIN windrow_document AS there
    ON there.tenant = moved.tenant AND there.collection = moved.collection
   AND there.source = moved.source AND there.uri = given.value ->> 'uri'
   AND there.branch = moved.branch
 WHERE there.id NOT IN (SELECT value ->> 'id' FROM json_each(:rows))
