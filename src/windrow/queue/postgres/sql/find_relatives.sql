-- Groups that must stay with these: those that their roots are members of, and those whose roots are
-- members of these. :ids. Returns id.
SELECT root.group_id AS id
  FROM windrow.job AS root
 WHERE root.id = ANY (ARRAY(SELECT job_group.root FROM windrow.job_group
                             WHERE job_group.id = ANY (:ids::uuid[])))
   AND root.group_id IS NOT NULL
 UNION
SELECT job_group.id
  FROM windrow.job_group
 WHERE job_group.id = ANY (ARRAY(SELECT member.root_of FROM windrow.job AS member
                                  WHERE member.group_id = ANY (:ids::uuid[])
                                    AND member.root_of IS NOT NULL))
