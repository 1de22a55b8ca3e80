-- What came of the last look at sources; without an error they are as new. :rows, JSON; :now.
UPDATE windrow_source
   SET error = value ->> 'error',
       etag = iif(value ->> 'error' IS NULL, value ->> 'etag', etag),
       last_modified = iif(value ->> 'error' IS NULL, value ->> 'last_modified', last_modified),
       refreshed_at = iif(value ->> 'error' IS NULL, :now, refreshed_at)
  FROM json_each(:rows)
 WHERE windrow_source.tenant = value ->> 'tenant' AND windrow_source.id = value ->> 'id'
