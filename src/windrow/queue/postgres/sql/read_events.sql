-- Events in their order. :after, :until (a number); :types, :queue, :group_id, :job_id, each null for
-- any; :names_jobs, or else job_ids is null; :limit. Returns seq, at, type, state, queue, kind, tenant,
-- group_id, job_ids, details, jobs (how many).
-- The numbers between :after and :until bound what a reader looks at that wants few of them.
SELECT seq, at, type, state, queue, kind, tenant, group_id,
       CASE WHEN :names_jobs::boolean THEN job_ids END AS job_ids, details,
       coalesce(cardinality(job_ids), 0) AS jobs
  FROM windrow.event
 WHERE seq > :after::bigint
   AND seq <= :until::bigint
   AND (:types::text[] IS NULL OR type = ANY (:types))
   AND (:queue::text IS NULL OR queue = :queue)
   AND (:group_id::uuid IS NULL OR group_id = :group_id)
   AND (:job_id::uuid IS NULL OR :job_id = ANY (job_ids))
 ORDER BY seq
 LIMIT :limit::integer
