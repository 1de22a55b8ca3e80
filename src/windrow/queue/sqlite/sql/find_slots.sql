-- The slots of keys, each with the state of its job if that is ready or active, else null.
-- :keys json array
-- Returns key, seq, state.
SELECT
  s.key, s.seq,
  (
    SELECT j.state FROM windrow_job_live AS j
    WHERE j.seq = s.seq AND j.state IN ('ready', 'active')
      AND s.key IN (SELECT value FROM json_each(j.limit_keys))
  ) AS state
FROM json_each(:keys) AS k
CROSS JOIN windrow_job_slot AS s ON s.key = k.value
