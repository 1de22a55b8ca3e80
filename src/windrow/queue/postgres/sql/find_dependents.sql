-- Groups that cannot end before a new member of the given ones has ended: these, and upwards. A
-- group keeps its root from ending, the root keeps its own group and its follower, and a follower
-- keeps its group. A root that has ended is looked at too, because it may be retried.
-- :ids JSON array of group ids. Returns of each that has not ended: id, root. SQLite tells more,
-- because there followers that are not written yet have to be thought of.
-- gate tenant
WITH RECURSIVE dependent (id) AS (
    SELECT value::uuid FROM json_array_elements_text(:ids::text::json)
     UNION
    SELECT above.group_id
      FROM dependent
     CROSS JOIN LATERAL (
           SELECT root FROM windrow.job_group
            WHERE job_group.id = dependent.id AND state = 'active' AND root IS NOT NULL
           OFFSET 0) AS running
     CROSS JOIN LATERAL (
           SELECT job.group_id FROM windrow.job WHERE job.id = running.root
            UNION ALL
           SELECT follower.group_id
             FROM windrow.job_live AS holder
            CROSS JOIN LATERAL (
                  SELECT live.group_id
                    FROM windrow.job_live AS live
                   WHERE live.is_follower
                     AND live.unique_key = holder.unique_key
                     AND live.tenant IS NOT DISTINCT FROM holder.tenant
                  OFFSET 0) AS follower
            WHERE holder.id = running.root AND NOT holder.is_follower) AS above
     WHERE above.group_id IS NOT NULL
)
SELECT job_group.id, job_group.root
  FROM dependent
 CROSS JOIN LATERAL (
       SELECT id, root FROM windrow.job_group
        WHERE job_group.id = dependent.id AND state = 'active'
       OFFSET 0) AS job_group
