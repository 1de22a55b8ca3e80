-- Scheduled jobs that are due become ready (held with limits), the longest due first.
-- :now :limit
-- Returns queue, state.
UPDATE windrow_job_live SET state = CASE WHEN limit_keys IS NULL THEN 'ready' ELSE 'held' END
WHERE seq IN (
  SELECT seq FROM windrow_job_live INDEXED BY windrow_job_live_scheduled
  WHERE state = 'scheduled' AND run_at <= :now
  ORDER BY run_at
  LIMIT :limit
)
RETURNING queue, state
