-- The live members of a group.
-- :group_id
-- Returns the fields of `rows.LiveJob`.
SELECT
  j.seq, j.id, j.queue, j.state, j.run_at, j.crashes, j.max_crashes, j.lease, j.tenant, j.group_id,
  j.root_of, j.unique_key, j.is_follower, j.stop_as, j.error, j.limit_keys, j.kind
FROM windrow_job_live AS j
WHERE j.group_id = :group_id
