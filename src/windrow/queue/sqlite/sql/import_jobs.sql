-- A job as it was elsewhere, into the table {table} of live or of finished ones.
-- Its columns; it keeps its place in the line and forgets the lease of its last run.
INSERT INTO {table} (
  seq, id, queue, kind, state, priority, run_at, created_at, started_at, finished_at, expires_at,
  attempts, crashes, runs, max_attempts, max_crashes, lease_seconds, retention_seconds, tenant,
  group_id, root_of, unique_key, is_follower, error, limit_keys, fair_key, max_hold_seconds, place
)
VALUES (
  :seq, :id, :queue, :kind, :state, :priority, :run_at, :created_at, :started_at, :finished_at,
  :expires_at, :attempts, :crashes, :runs, :max_attempts, :max_crashes, :lease_seconds,
  :retention_seconds, :tenant, :group_id, :root_of, :unique_key, :is_follower, :error, :limit_keys,
  :fair_key, :max_hold_seconds, :place
)
