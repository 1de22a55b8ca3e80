-- Groups that were made a short while ago and go on: members may be about to come.
-- :ids json array :since
-- Returns id.
SELECT id FROM windrow_job_group
WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'active' AND created_at > :since
