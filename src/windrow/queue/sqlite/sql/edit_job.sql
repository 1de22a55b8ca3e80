-- New values for a job. The expiry of a finished one follows its retention.
-- {table} windrow_job_live or windrow_job_finished, :seq :state :kind :queue :priority :run_at :max_attempts
-- :max_crashes :lease_seconds :retention_seconds
UPDATE {table}
SET state = :state, kind = :kind, queue = :queue, priority = :priority, run_at = :run_at,
  max_attempts = :max_attempts, max_crashes = :max_crashes, lease_seconds = :lease_seconds,
  expires_at = CASE
    WHEN :retention_seconds IS retention_seconds THEN expires_at
    WHEN :retention_seconds < 0 THEN NULL
    ELSE finished_at + coalesce(
      :retention_seconds, CASE state WHEN 'failed' THEN 604800 ELSE 86400 END
    ) * 1000000
  END,
  retention_seconds = :retention_seconds
WHERE seq = :seq
