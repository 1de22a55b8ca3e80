-- The slots of keys, each with the state of its job and when that started: null if the job carries
-- the key no more. A finished job is looked at too. A ready job is blocked when no claim would take
-- it: its queue or group is paused, or one of its keys is parked.
-- :keys json array, :now
-- Returns key, seq, state, started_at, id, limit_keys, queue, kind, tenant, taken_at, is_blocked,
-- is_unserved.
SELECT
  s.key, s.seq, coalesce(j.state, f.state) AS state, coalesce(j.started_at, f.started_at) AS started_at,
  j.id, j.limit_keys, j.queue, j.kind, j.tenant, s.taken_at,
  j.state = 'ready' AND (
    j.queue IN (SELECT name FROM windrow_queue WHERE is_paused = 1)
    OR ifnull(j.group_id IN (SELECT id FROM windrow_job_group WHERE is_paused = 1), 0)
    OR EXISTS (
      SELECT 1 FROM json_each(j.limit_keys) AS carried
      WHERE carried.value IN (
        SELECT key FROM windrow_job_limit WHERE parked_until IS NOT NULL AND parked_until > :now
      )
    )
  ) AS is_blocked,
  j.state = 'ready' AND EXISTS (
    SELECT 1 FROM windrow_unserved AS u
    WHERE u.queue = j.queue AND u.kind = j.kind AND u.tenant = ifnull(j.tenant, '') AND u.until > :now
  ) AS is_unserved
FROM json_each(:keys) AS k
CROSS JOIN windrow_job_slot AS s ON s.key = k.value
LEFT JOIN windrow_job_live AS j
  ON j.seq = s.seq AND s.key IN (SELECT value FROM json_each(j.limit_keys))
LEFT JOIN windrow_job_finished AS f ON f.seq = s.seq
