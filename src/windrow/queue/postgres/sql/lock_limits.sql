-- Lock keys, in their order. :keys. Returns them with their settings.
-- A statement of its own: what is in use is counted by the next one, which sees all that was
-- promoted by the transactions this one waited for.
SELECT key, active, per_second, burst, tokens, refilled_at, parked_until, turn
  FROM windrow.job_limit
 WHERE key = ANY (:keys::text[])
 ORDER BY key
   FOR UPDATE
