-- Events in their order. :after, :until (a number); :types (json array), :queue, :group_id, :job_id (16
-- bytes), each null for any; :names_jobs, or else job_ids is null; :limit
-- Returns the fields of `records.EventBatch`. instr finds an id at any byte, so the reader looks
-- again; the numbers bound what is looked at for one that wants few.
SELECT seq, at, type, state, queue, kind, tenant, group_id,
  CASE WHEN :names_jobs THEN job_ids END AS job_ids, details,
  ifnull(length(job_ids), 0) / 16 AS jobs
FROM windrow_event
WHERE seq > :after
  AND seq <= :until
  AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
  AND (:queue IS NULL OR queue = :queue)
  AND (:group_id IS NULL OR group_id = :group_id)
  AND (:job_id IS NULL OR instr(job_ids, :job_id) > 0)
ORDER BY seq
LIMIT :limit
