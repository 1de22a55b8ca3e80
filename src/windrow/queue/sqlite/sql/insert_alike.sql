-- New jobs that differ in their ids and payloads only: as many rows of `insert_jobs`, with what they
-- share given once. They have no unique key and no group, and their ids are new.
-- :ids json array, :first the seq of the first one; the others in a row after it
-- :queue :kind :state :priority :run_at :created_at :max_attempts :max_crashes :lease_seconds
-- :retention_seconds :tenant :limit_keys (json array or null) :fair_key :max_hold_seconds
INSERT INTO windrow_job_live (
  seq, id, queue, kind, state, priority, run_at, created_at, max_attempts, max_crashes,
  lease_seconds, retention_seconds, tenant, limit_keys, fair_key, max_hold_seconds, place
)
SELECT
  :first + given.key, given.value, :queue, :kind, :state, :priority, :run_at, :created_at,
  :max_attempts, :max_crashes, :lease_seconds, :retention_seconds, :tenant, :limit_keys, :fair_key,
  :max_hold_seconds, :first + given.key
FROM json_each(:ids) AS given
