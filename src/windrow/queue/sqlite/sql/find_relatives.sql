-- Groups that must stay with these: those that their roots are members of, and those whose roots are
-- members of these.
-- :ids json array
-- Returns id.
SELECT r.group_id AS id
FROM windrow_job_group AS g CROSS JOIN windrow_job AS r ON r.id = g.root
WHERE g.id IN (SELECT value FROM json_each(:ids)) AND r.group_id IS NOT NULL
UNION
SELECT m.root_of
FROM windrow_job AS m CROSS JOIN windrow_job_group AS g ON g.id = m.root_of
WHERE m.group_id IN (SELECT value FROM json_each(:ids))
