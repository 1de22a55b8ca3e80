-- The ids of the members of a group that ended in a state, the first to end first.
-- :group_id :state :kind; :after, the id of the last one before, or null; :skip, of those after it; :limit
SELECT j.id
FROM windrow_job_finished AS j
WHERE j.group_id = :group_id
  AND j.state = :state
  AND j.kind = :kind
  AND (j.finished_at, j.id) > (
    coalesce((SELECT b.finished_at FROM windrow_job_finished AS b WHERE b.id = :after), 0),
    coalesce(:after, ''))
ORDER BY j.finished_at, j.id
LIMIT :limit OFFSET :skip
