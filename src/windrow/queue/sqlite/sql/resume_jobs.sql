-- Paused jobs go on: claimable when due (held with limits, for which it waits from now on), and held
-- while the job they follow is there.
-- :seqs json array, :now
UPDATE windrow_job_live
SET state = CASE
  WHEN is_follower THEN 'held'
  WHEN run_at > :now THEN 'scheduled'
  WHEN limit_keys IS NOT NULL THEN 'held'
  ELSE 'ready'
END,
run_at = CASE WHEN limit_keys IS NULL OR is_follower THEN run_at ELSE max(run_at, :now) END
WHERE seq IN (SELECT value FROM json_each(:seqs))
