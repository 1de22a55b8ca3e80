-- The ready jobs that carry a key, worst first. :key, locked; :limit. Returns id.
SELECT job.id
  FROM windrow.job_slot AS slot
 CROSS JOIN LATERAL (
       SELECT live.id, live.priority, live.seq
         FROM windrow.job_live AS live
        WHERE live.id = slot.job_id AND live.state = 'ready' AND slot.key = ANY (live.limit_keys)
       OFFSET 0) AS job
 WHERE slot.key = :key::text
 ORDER BY job.priority, job.seq DESC
 LIMIT :limit::integer
