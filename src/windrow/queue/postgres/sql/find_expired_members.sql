-- Finished members of an expired group; all of them lie in this leaf. :group_id, :limit. Returns id.
SELECT id
  FROM windrow.job_finished_kept
 WHERE group_id = :group_id::uuid
 ORDER BY id
 LIMIT :limit::bigint
