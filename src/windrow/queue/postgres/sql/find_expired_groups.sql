-- Groups whose time is over, the soonest first. :limit; :now or null. Returns id.
SELECT id
  FROM windrow.job_group
 WHERE expires_at <= coalesce(:now::timestamptz, statement_timestamp())
   AND expires_at IS NOT NULL
 ORDER BY expires_at
 LIMIT :limit::bigint
