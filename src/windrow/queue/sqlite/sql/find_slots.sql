-- The slots of keys, each with the state of its job and when that started: null if the job carries
-- the key no more. A finished job is looked at too.
-- :keys json array
-- Returns key, seq, state, started_at.
SELECT s.key, s.seq, coalesce(j.state, f.state) AS state, coalesce(j.started_at, f.started_at) AS started_at
FROM json_each(:keys) AS k
CROSS JOIN windrow_job_slot AS s ON s.key = k.value
LEFT JOIN windrow_job_live AS j
  ON j.seq = s.seq AND s.key IN (SELECT value FROM json_each(j.limit_keys))
LEFT JOIN windrow_job_finished AS f ON f.seq = s.seq
