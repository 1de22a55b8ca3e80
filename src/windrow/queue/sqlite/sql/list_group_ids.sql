-- The ids of groups, in their order.
-- :after (or null) :limit
-- Returns id.
SELECT id FROM windrow_job_group WHERE id > ifnull(:after, '') ORDER BY id LIMIT :limit
