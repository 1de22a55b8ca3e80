-- The jobs of groups: members and roots. :ids of groups; :seconds; :now or null.
-- Returns id, place, and whether it must stay for now: it runs, or follows one that does, or has only
-- just come, so that more may be about to.
SELECT job.id, job.seq AS place,
       job.state = 'active' OR job.is_follower
       OR job.created_at > coalesce(:now::timestamptz, statement_timestamp())
                           - :seconds::double precision * interval '1 second' AS must_stay
  FROM windrow.job AS job
 WHERE job.group_id = ANY (:ids::uuid[])
 UNION
SELECT job.id, job.seq, job.state = 'active' OR job.is_follower
  FROM windrow.job AS job
 WHERE job.id = ANY (ARRAY(SELECT job_group.root FROM windrow.job_group
                            WHERE job_group.id = ANY (:ids::uuid[])))
