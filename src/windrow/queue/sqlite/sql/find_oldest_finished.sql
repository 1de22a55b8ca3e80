-- Finished jobs that may go when there is no room, the first that finished first, with about what
-- they take. Those of a group that has not ended are still needed. Reads all finished jobs.
-- :limit
-- Returns id, bytes.
SELECT f.id,
  400 + length(p.payload) + coalesce(length(r.result), 0) + coalesce(length(b.body), 0)
  + coalesce((SELECT sum(length(s.result) + 100) FROM windrow_job_step AS s WHERE s.seq = f.seq), 0)
    AS bytes
FROM (
  SELECT j.seq, j.id FROM windrow_job_finished AS j
  WHERE j.group_id IS NULL
    OR NOT EXISTS (SELECT 1 FROM windrow_job_group AS g WHERE g.id = j.group_id AND g.ended_at IS NULL)
  ORDER BY j.finished_at, j.seq
  LIMIT :limit
) AS f
LEFT JOIN windrow_job_payload AS p ON p.seq = f.seq
LEFT JOIN windrow_job_result AS r ON r.seq = f.seq
LEFT JOIN windrow_blob AS b ON b.hash = r.blob_hash
