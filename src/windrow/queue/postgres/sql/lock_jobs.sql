-- Lock live jobs that somebody wants to change from outside. :ids.
-- Returns id, state, queue, stop_as, error, root_of, group_id, unique_key, tenant.
-- gate tenant
SELECT id, state, queue, stop_as, error, root_of, group_id, unique_key, tenant
  FROM windrow.job_live
 WHERE id = ANY (:ids::uuid[])
 ORDER BY id
   FOR UPDATE
