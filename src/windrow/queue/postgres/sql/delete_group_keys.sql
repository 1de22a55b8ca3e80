-- Forget keys of an expired group whose members are gone, so many at a time. :group_id, :limit.
-- Returns a row for each.
DELETE FROM windrow.group_key
 WHERE group_id = :group_id::uuid
   AND key = ANY (ARRAY(SELECT key FROM windrow.group_key
                         WHERE group_id = :group_id::uuid ORDER BY key LIMIT :limit::bigint))
   AND NOT EXISTS (SELECT FROM windrow.job_finished_kept AS job
                    WHERE job.group_id = :group_id::uuid OFFSET 0)
   AND NOT EXISTS (SELECT FROM windrow.job_live AS job
                    WHERE job.group_id = :group_id::uuid OFFSET 0)
RETURNING key
