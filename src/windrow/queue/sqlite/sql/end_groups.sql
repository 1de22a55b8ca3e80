-- A group ends. All of it expires some time later, a day if it was not said.
-- :id :state :now
UPDATE windrow_job_group
SET state = :state, ended_at = :now, is_open = 0,
  expires_at = CASE
    WHEN pending > 0 OR retention_seconds < 0 THEN NULL
    ELSE :now + coalesce(retention_seconds, 86400) * 1000000
  END
WHERE id = :id
