-- The live members of groups, in the order they are locked. :ids of the groups. Returns id, group_id.
-- gate tenant
SELECT id, group_id FROM windrow.job_live WHERE group_id = ANY (:ids::uuid[]) ORDER BY id
