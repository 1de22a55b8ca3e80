-- The workers that are alive, by name. :now or null.
SELECT *
  FROM windrow.worker
 WHERE expires_at > coalesce(:now::timestamptz, statement_timestamp())
 ORDER BY name COLLATE "C", id
