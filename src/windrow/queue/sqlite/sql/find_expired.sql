-- The jobs of leases that have run out, the longest expired first.
-- :now :limit
-- Returns the fields of `rows.LiveJob`, then the worker.
SELECT
  j.seq, j.id, j.queue, j.state, j.run_at, j.crashes, j.max_crashes, j.lease, j.tenant, j.group_id,
  j.root_of, j.unique_key, j.is_follower, j.stop_as, j.error, j.limit_keys, j.kind,
  l.worker
FROM windrow_lease AS l INDEXED BY windrow_lease_expiry
CROSS JOIN json_each(l.job_seqs) AS held
CROSS JOIN windrow_job_live AS j ON j.seq = held.value
WHERE l.expires_at <= :now
  AND j.lease = l.token
  AND j.state = 'active'
ORDER BY l.expires_at
LIMIT :limit
