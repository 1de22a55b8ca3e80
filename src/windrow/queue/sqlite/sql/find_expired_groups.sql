-- Groups whose time is over, the soonest first.
-- :now :limit
-- Returns id.
SELECT id FROM windrow_job_group
WHERE expires_at IS NOT NULL AND expires_at <= :now
ORDER BY expires_at
LIMIT :limit
