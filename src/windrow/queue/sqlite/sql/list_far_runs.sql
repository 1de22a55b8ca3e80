-- Runs that nobody wrote in for a while, by key. :seconds :after :limit :now. Returns key.
SELECT key
  FROM windrow_far_run
 WHERE key > :after AND kept_at <= :now - :seconds * 1000000
 ORDER BY key
 LIMIT :limit
