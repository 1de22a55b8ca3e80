-- A new job.
-- :seq :id :queue :kind :state :priority :run_at :created_at :max_attempts :max_crashes
-- :lease_seconds :retention_seconds :tenant :group_id :unique_key :is_follower
-- :limit_keys (json array or null) :fair_key :max_hold_seconds
INSERT INTO windrow_job_live (
  seq, id, queue, kind, state, priority, run_at, created_at, max_attempts, max_crashes,
  lease_seconds, retention_seconds, tenant, group_id, unique_key, is_follower, limit_keys, fair_key,
  max_hold_seconds, place
)
VALUES (
  :seq, :id, :queue, :kind, :state, :priority, :run_at, :created_at, :max_attempts, :max_crashes,
  :lease_seconds, :retention_seconds, :tenant, :group_id, :unique_key, :is_follower, :limit_keys,
  :fair_key, :max_hold_seconds, :seq
)
