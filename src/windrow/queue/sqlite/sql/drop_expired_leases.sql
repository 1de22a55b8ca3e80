-- Leases that ran out and hold no active job.
-- :now
DELETE FROM lease
WHERE expires_at <= :now
  AND NOT EXISTS (
    SELECT 1 FROM json_each(lease.job_seqs) AS held CROSS JOIN job_live AS j ON j.seq = held.value
    WHERE j.lease = lease.token AND j.state = 'active'
  )
