-- New values for a job. The expiry of a finished one follows its retention.
-- {table} windrow_job_live or windrow_job_finished, :seq :state :kind :queue :priority :run_at :max_attempts
-- :max_crashes :lease_seconds :retention_seconds :limit_keys :fair_key :max_hold_seconds
UPDATE {table}
SET state = :state, kind = :kind, queue = :queue, priority = :priority, run_at = :run_at,
  max_attempts = :max_attempts, max_crashes = :max_crashes, lease_seconds = :lease_seconds,
  limit_keys = :limit_keys, fair_key = :fair_key, max_hold_seconds = :max_hold_seconds,
  expires_at = CASE
    WHEN :retention_seconds IS retention_seconds OR group_id IS NOT NULL THEN expires_at
    ELSE finished_at + nullif(
      coalesce(
        :retention_seconds,
        (
          SELECT CASE :state WHEN 'failed' THEN q.failed_seconds ELSE q.cancelled_seconds END
          FROM windrow_queue AS q WHERE q.name = :queue
        ),
        CASE :state WHEN 'failed' THEN 604800 ELSE 86400 END
      ),
      -1
    ) * 1000000
  END,
  retention_seconds = :retention_seconds
WHERE seq = :seq
