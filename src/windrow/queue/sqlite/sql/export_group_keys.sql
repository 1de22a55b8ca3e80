-- The keys of a group.
-- :group_id
-- Returns key, job_id.
SELECT key, job_id FROM windrow_group_key WHERE group_id = :group_id ORDER BY key
