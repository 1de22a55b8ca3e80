-- Scheduled jobs that are due become ready, the longest due first.
-- :now :limit
-- Returns queue.
UPDATE windrow_job_live SET state = 'ready'
WHERE seq IN (
  SELECT seq FROM windrow_job_live INDEXED BY windrow_job_live_scheduled
  WHERE state = 'scheduled' AND run_at <= :now
  ORDER BY run_at
  LIMIT :limit
)
RETURNING queue
