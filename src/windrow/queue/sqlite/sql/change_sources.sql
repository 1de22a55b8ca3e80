-- Sources as they are said to be now, those of them that are there still. :rows, JSON.
UPDATE windrow_source
   SET collection = value ->> 'collection', kind = value ->> 'kind', uri = value ->> 'uri',
       title = value ->> 'title', options = value -> 'options', tags = value -> 'tags',
       refresh_seconds = value ->> 'refresh_seconds'
  FROM json_each(:rows)
 WHERE windrow_source.tenant = value ->> 'tenant' AND windrow_source.id = value ->> 'id'
