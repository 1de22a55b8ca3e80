-- Jobs that can be moved by themselves, locked: unclaimed ones, none of a group or a root of one.
-- Followers take the place of their holder first. In the order of their ids, for which there is an
-- index. :limit. Returns id, place.
SELECT job.id, job.seq AS place
  FROM windrow.job_live AS job
 WHERE job.state IN ('ready', 'scheduled', 'paused', 'held')
   AND NOT job.is_follower
   AND job.group_id IS NULL
   AND (job.root_of IS NULL
        OR NOT EXISTS (SELECT FROM windrow.job_group WHERE job_group.id = job.root_of OFFSET 0))
 ORDER BY job.id
 LIMIT :limit::bigint
   FOR UPDATE OF job SKIP LOCKED
