-- Runs that nobody wrote in for a while, by key. :seconds, :after, :limit, :now. Returns key.
SELECT key
  FROM windrow.far_run
 WHERE key > :after::text
   AND kept_at <= coalesce(:now::timestamptz, statement_timestamp())
                  - make_interval(secs => :seconds::double precision)
 ORDER BY key
 LIMIT :limit::int
