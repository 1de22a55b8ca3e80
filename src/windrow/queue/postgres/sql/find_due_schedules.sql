-- Schedules whose next slot has come, the longest due first, locked; those that somebody else is
-- firing or changing just now are passed over. :limit; :now or null. Returns schedules, and now.
SELECT *, coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM windrow.schedule
 WHERE NOT is_paused AND next_at <= coalesce(:now::timestamptz, statement_timestamp())
 ORDER BY next_at
 LIMIT :limit::integer
   FOR UPDATE SKIP LOCKED
