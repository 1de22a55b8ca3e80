-- The ids of the members of a group that ended in a state, the first to end first.
-- :group_id :state :kind; :after, the id of the last one before, or null; :skip, of those after it; :limit
SELECT job.id
  FROM windrow.job
 WHERE job.group_id = :group_id::uuid
   AND job.state = :state::text
   AND job.kind = :kind::text
   AND (:after::uuid IS NULL
        OR (job.finished_at, job.id)
           > ((SELECT before.finished_at FROM windrow.job AS before
                WHERE before.id = :after), :after))
 ORDER BY job.finished_at, job.id
 LIMIT :limit::integer OFFSET :skip::integer
