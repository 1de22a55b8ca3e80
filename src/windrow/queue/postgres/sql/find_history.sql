-- Finished jobs that can be moved by themselves, locked: none of a group or a root of one. Two
-- statements here, because rows of a UNION cannot be locked. :limit. Returns id, place.
SELECT job.id, job.seq AS place
  FROM windrow.job_finished AS job
 WHERE job.group_id IS NULL
   AND (job.root_of IS NULL
        OR NOT EXISTS (SELECT FROM windrow.job_group WHERE job_group.id = job.root_of OFFSET 0))
 ORDER BY job.id
 LIMIT :limit::bigint
   FOR UPDATE OF job SKIP LOCKED
