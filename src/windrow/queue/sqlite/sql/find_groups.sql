-- Whether groups take new members: not once they have ended or are being cancelled.
-- :ids json array of group ids
-- Returns id, takes_members, room (for how many more; null: for any number).
SELECT id, ended_at IS NULL AND NOT is_cancelled AS takes_members, max_jobs - added AS room
FROM windrow_job_group
WHERE id IN (SELECT value FROM json_each(:ids))
