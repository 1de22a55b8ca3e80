-- The live jobs that hold unique keys, and their followers.
-- :keys json array of [tenant, unique_key]
-- Returns id, seq, queue, state, run_at, created_at, tenant, group_id, unique_key, is_follower,
-- root_of.
SELECT
  j.id, j.seq, j.queue, j.state, j.run_at, j.created_at, j.tenant, j.group_id, j.unique_key,
  j.is_follower, j.root_of
FROM json_each(:keys) AS k
CROSS JOIN windrow_job_live AS j INDEXED BY windrow_job_live_unique
WHERE j.unique_key = json_extract(k.value, '$[1]')
  AND j.unique_key IS NOT NULL
  AND ifnull(j.tenant, x'') = ifnull(json_extract(k.value, '$[0]'), x'')
