-- The followers of unique keys.
-- :keys json array of [tenant, unique_key]
-- Returns the fields of `rows.LiveJob`.
SELECT
  j.seq, j.id, j.queue, j.state, j.run_at, j.crashes, j.max_crashes, j.lease, j.tenant, j.group_id,
  j.root_of, j.unique_key, j.is_follower, j.stop_as, j.error, j.limit_keys, j.kind
FROM json_each(:keys) AS k
CROSS JOIN windrow_job_live AS j INDEXED BY windrow_job_live_unique
WHERE j.unique_key = json_extract(k.value, '$[1]')
  AND j.unique_key IS NOT NULL
  AND ifnull(j.tenant, x'') = ifnull(json_extract(k.value, '$[0]'), x'')
  AND j.is_follower = 1
