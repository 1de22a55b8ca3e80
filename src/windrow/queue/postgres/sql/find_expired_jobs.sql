-- Finished jobs whose time is over among those that are removed one by one, the soonest first.
-- :limit; :now or null. Returns id.
SELECT id
  FROM windrow.job_finished_kept
 WHERE expires_at <= coalesce(:now::timestamptz, statement_timestamp())
   AND expires_at < 'infinity'
 ORDER BY expires_at
 LIMIT :limit::bigint
