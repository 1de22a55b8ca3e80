-- Jobs that can be moved by themselves: unclaimed ones, then finished ones, none of a group or a root
-- of one. Followers take the place of their holder first.
-- :limit
-- Returns id, place.
SELECT id, place FROM (
  SELECT j.id, ifnull(j.place, j.seq) AS place
  FROM windrow_job_live AS j
  WHERE j.state IN ('ready', 'scheduled', 'paused', 'held')
    AND j.is_follower = 0
    AND j.group_id IS NULL
    AND (j.root_of IS NULL OR NOT EXISTS (SELECT 1 FROM windrow_job_group AS g WHERE g.id = j.root_of))
  ORDER BY j.seq
  LIMIT :limit
)
UNION ALL
SELECT id, place FROM (
  SELECT j.id, ifnull(j.place, j.seq) AS place
  FROM windrow_job_finished AS j
  WHERE j.group_id IS NULL
    AND (j.root_of IS NULL OR NOT EXISTS (SELECT 1 FROM windrow_job_group AS g WHERE g.id = j.root_of))
  ORDER BY j.seq
  LIMIT :limit
)
LIMIT :limit
