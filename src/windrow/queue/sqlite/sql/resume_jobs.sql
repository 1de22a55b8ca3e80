-- Paused jobs go on: claimable when due, and held while the job they follow is there.
-- :seqs json array, :now
UPDATE windrow_job_live
SET state = CASE
  WHEN is_follower THEN 'held'
  WHEN run_at <= :now THEN 'ready'
  ELSE 'scheduled'
END
WHERE seq IN (SELECT value FROM json_each(:seqs))
