-- Events in their order. :after, :until (a number); :types, :queue, :group_id, :job_id, each null for
-- any; :limit. Returns seq, at, type, state, queue, kind, tenant, group_id, job_ids, details.
-- The numbers between :after and :until bound what a reader looks at that wants few of them.
SELECT seq, at, type, state, queue, kind, tenant, group_id, job_ids, details
  FROM windrow.event
 WHERE seq > :after::bigint
   AND seq <= :until::bigint
   AND (:types::text[] IS NULL OR type = ANY (:types))
   AND (:queue::text IS NULL OR queue = :queue)
   AND (:group_id::uuid IS NULL OR group_id = :group_id)
   AND (:job_id::uuid IS NULL OR :job_id = ANY (job_ids))
 ORDER BY seq
 LIMIT :limit::integer
