-- The state of groups, without locking them. :ids. Returns id, state, is_cancelled.
-- gate tenant
SELECT id, state, is_cancelled FROM windrow.job_group WHERE id = ANY (:ids::uuid[])
