-- Which keys groups have had, and the jobs that have them.
-- :keys 32 bytes for each: the group's id and the hash of the key
-- Returns group_id, key, job_id.
WITH RECURSIVE place (at) AS (
  SELECT 1 WHERE length(:keys) > 0
  UNION ALL
  SELECT at + 32 FROM place WHERE at + 32 < length(:keys)
)
SELECT had.group_id, had.key, had.job_id
FROM place
CROSS JOIN windrow_group_key AS had
  ON had.group_id = substr(:keys, at, 16) AND had.key = substr(:keys, at + 16, 16)
