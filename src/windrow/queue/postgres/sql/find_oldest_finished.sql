-- Finished jobs that may go when there is no room, the first that finished first, with about what
-- they take. Those of a group that has not ended are still needed. Reads all finished jobs. :limit.
-- Returns id, bytes.
SELECT job.id,
       400 + coalesce(pg_column_size(job.result), 0) + coalesce(pg_column_size(stored.payload), 0)
           + coalesce(pg_column_size(blob.body), 0)
           + coalesce((SELECT sum(pg_column_size(step.result) + 150)
                         FROM windrow.job_step AS step WHERE step.job_id = job.id), 0) AS bytes
  FROM (SELECT id, result, result_hash, finished_at
          FROM windrow.job_finished AS job
         WHERE group_id IS NULL
            OR NOT EXISTS (SELECT FROM windrow.job_group
                            WHERE job_group.id = job.group_id AND job_group.ended_at IS NULL)
         ORDER BY finished_at, id
         LIMIT :limit::bigint) AS job
  LEFT JOIN windrow.job_payload AS stored ON stored.id = job.id
  LEFT JOIN windrow.blob ON blob.hash = job.result_hash
 ORDER BY job.finished_at, job.id
