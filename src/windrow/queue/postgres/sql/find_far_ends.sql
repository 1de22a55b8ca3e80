-- How jobs have ended, of those that have. :keys. Returns key, ended.
SELECT key, ended
  FROM windrow.far_run
 WHERE key = ANY (:keys::text[]) AND ended IS NOT NULL
