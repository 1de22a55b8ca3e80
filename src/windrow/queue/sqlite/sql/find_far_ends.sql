-- How jobs have ended, of those that have. :keys (json array). Returns key, ended.
SELECT key, ended
  FROM windrow_far_run
 WHERE key IN (SELECT value FROM json_each(:keys)) AND ended IS NOT NULL
