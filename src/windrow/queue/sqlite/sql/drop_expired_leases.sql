-- Leases that ran out and hold no active job.
-- :now
DELETE FROM windrow_lease
WHERE expires_at <= :now
  AND NOT EXISTS (
    SELECT 1 FROM json_each(windrow_lease.job_seqs) AS held CROSS JOIN windrow_job_live AS j ON j.seq = held.value
    WHERE j.lease = windrow_lease.token AND j.state = 'active'
  )
