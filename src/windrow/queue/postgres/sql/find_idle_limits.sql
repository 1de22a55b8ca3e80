-- The next keys for which nothing is set, locked. :after, the key to begin behind; :limit; :now or
-- null. Returns key. Keys that somebody else has locked are in use, and passed over.
SELECT key
  FROM windrow.job_limit
 WHERE key > :after::text
   AND active IS NULL
   AND per_second IS NULL
   AND (parked_until IS NULL
        OR parked_until <= coalesce(:now::timestamptz, statement_timestamp()))
 ORDER BY key
 LIMIT :limit::integer
   FOR UPDATE SKIP LOCKED
