-- Root jobs whose groups may end with the end of these jobs, groups around groups included. :ids.
-- Returns id.
WITH RECURSIVE root (id) AS (
    SELECT unnest(:ids::uuid[])
    UNION
    SELECT around.root
      FROM root
      JOIN windrow.job_live AS member ON member.id = root.id
      JOIN windrow.job_group AS around ON around.id = member.group_id
     WHERE around.root IS NOT NULL
)
SELECT id FROM root
