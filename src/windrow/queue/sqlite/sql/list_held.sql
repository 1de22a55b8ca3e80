-- The active jobs that leases hold.
-- :tokens json array
-- Returns id, stop_as.
SELECT j.id, j.stop_as
FROM windrow_lease AS l
CROSS JOIN json_each(l.job_seqs) AS held
CROSS JOIN windrow_job_live AS j ON j.seq = held.value
WHERE l.token IN (SELECT value FROM json_each(:tokens))
  AND j.lease = l.token
  AND j.state = 'active'
