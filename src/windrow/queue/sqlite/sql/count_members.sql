-- The live members of a group by state, from the index alone.
-- :group_id
-- Returns state, count.
SELECT state, count(*) FROM windrow_job_live WHERE group_id = :group_id GROUP BY state
