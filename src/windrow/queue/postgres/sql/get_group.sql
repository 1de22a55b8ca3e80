-- A group with the number of its live members in each state (live_counts). :id.
SELECT job_group.*,
       (SELECT jsonb_object_agg(state, n)
          FROM (SELECT state, count(*) AS n
                  FROM windrow.job_live
                 WHERE group_id = :id::uuid
                 GROUP BY state) AS live) AS live_counts
  FROM windrow.job_group
 WHERE job_group.id = :id::uuid
