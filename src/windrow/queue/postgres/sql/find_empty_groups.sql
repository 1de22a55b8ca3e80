-- Groups that have stood without a member for :seconds, or for :held_seconds if they are held open; not
-- those of roots, which may add some yet. :limit; :now or null. Locks the groups. Returns id.
SELECT id
  FROM windrow.job_group
 WHERE state = 'active' AND members = 0 AND root IS NULL
   AND created_at <= coalesce(:now::timestamptz, statement_timestamp()) - interval '1 second'
       * CASE WHEN is_open THEN :held_seconds::double precision
              ELSE :seconds::double precision END
 ORDER BY id
 LIMIT :limit::bigint
   FOR UPDATE SKIP LOCKED
