-- The jobs of groups: members and roots.
-- :ids json array of groups :since
-- Returns id, place, and whether it must stay for now: it runs, or follows one that does, or has only
-- just come, so that more may be about to.
SELECT
  j.id, ifnull(j.place, j.seq) AS place,
  j.state = 'active' OR j.is_follower OR j.created_at > :since AS must_stay
FROM windrow_job AS j
WHERE j.group_id IN (SELECT value FROM json_each(:ids))
UNION
SELECT j.id, ifnull(j.place, j.seq), j.state = 'active' OR j.is_follower
FROM windrow_job AS j
WHERE j.id IN (
  SELECT root FROM windrow_job_group WHERE id IN (SELECT value FROM json_each(:ids))
)
