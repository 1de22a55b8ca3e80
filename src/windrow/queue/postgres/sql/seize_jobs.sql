-- Lock live jobs at a time when nothing may be waited for: an error if somebody has one of them. :ids.
-- Only Postgres has it: SQLite has one writer, who waits for nobody.
-- gate tenant
SELECT id
  FROM windrow.job_live
 WHERE id = ANY (:ids::uuid[])
 ORDER BY id
   FOR UPDATE NOWAIT
