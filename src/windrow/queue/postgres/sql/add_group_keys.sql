-- Keys of a group as they were elsewhere. :group_id, :keys (bytes), :job_ids.
INSERT INTO windrow.group_key (group_id, key, job_id)
SELECT :group_id::uuid, key, job_id
  FROM unnest(:keys::bytea[], :job_ids::uuid[]) AS given (key, job_id)
