-- Groups that cannot end before a new member of the given ones has ended: these, and upwards. A
-- group keeps its root from ending, the root keeps its own group and its follower, and a follower
-- keeps its group. A root that has ended is looked at too, because it may be retried.
-- :ids json array of group ids
-- Returns of each that has not ended: id, root, tenant and unique_key of the root while it lives,
-- root_group, and follower_group (of the root's follower).
WITH RECURSIVE dependent (id) AS (
  SELECT value FROM json_each(:ids)
  UNION
  SELECT root.group_id
  FROM dependent
  CROSS JOIN windrow_job_group AS g ON g.id = dependent.id
  CROSS JOIN windrow_job_live AS root ON root.id = g.root
  WHERE g.ended_at IS NULL AND root.group_id IS NOT NULL
  UNION
  SELECT root.group_id
  FROM dependent
  CROSS JOIN windrow_job_group AS g ON g.id = dependent.id
  CROSS JOIN windrow_job_finished AS root ON root.id = g.root
  WHERE g.ended_at IS NULL AND root.group_id IS NOT NULL
  UNION
  SELECT follower.group_id
  FROM dependent
  CROSS JOIN windrow_job_group AS g ON g.id = dependent.id
  CROSS JOIN windrow_job_live AS root ON root.id = g.root
  CROSS JOIN windrow_job_live AS follower INDEXED BY windrow_job_live_unique
    ON follower.unique_key = root.unique_key
    AND ifnull(follower.tenant, x'') = ifnull(root.tenant, x'')
    AND follower.is_follower = 1
  WHERE g.ended_at IS NULL AND root.is_follower = 0 AND follower.unique_key IS NOT NULL
    AND follower.group_id IS NOT NULL
)
SELECT
  g.id, g.root, live.tenant, live.unique_key,
  ifnull(live.group_id, finished.group_id) AS root_group,
  (
    SELECT follower.group_id FROM windrow_job_live AS follower INDEXED BY windrow_job_live_unique
    WHERE follower.unique_key = live.unique_key AND follower.unique_key IS NOT NULL
      AND ifnull(follower.tenant, x'') = ifnull(live.tenant, x'')
      AND follower.is_follower = 1 AND live.is_follower = 0
  ) AS follower_group
FROM dependent
CROSS JOIN windrow_job_group AS g ON g.id = dependent.id
LEFT JOIN windrow_job_live AS live ON live.id = g.root
LEFT JOIN windrow_job_finished AS finished ON finished.id = g.root
WHERE g.ended_at IS NULL
