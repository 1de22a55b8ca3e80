-- The jobs of groups: members and roots. :ids of groups.
-- Returns id, place, and whether it must stay for now: it runs, or follows one that does.
SELECT job.id, job.seq AS place, job.state = 'active' OR job.is_follower AS must_stay
  FROM windrow.job AS job
 WHERE job.group_id = ANY (:ids::uuid[])
 UNION
SELECT job.id, job.seq, job.state = 'active' OR job.is_follower
  FROM windrow.job AS job
 WHERE job.id = ANY (ARRAY(SELECT job_group.root FROM windrow.job_group
                            WHERE job_group.id = ANY (:ids::uuid[])))
