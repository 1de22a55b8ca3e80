-- Lock finished jobs. :ids. Returns id, state, queue, group_id, unique_key, tenant.
-- gate tenant
SELECT id, state, queue, group_id, unique_key, tenant
  FROM windrow.job_finished
 WHERE id = ANY (:ids::uuid[])
 ORDER BY id
   FOR UPDATE
