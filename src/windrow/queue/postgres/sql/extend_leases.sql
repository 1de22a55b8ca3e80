-- Push the expiry of live leases on. :tokens; :seconds, a new length, or null; :now or null.
-- Returns for each job that a renewed lease holds id, stop_as and the lease's expires_at; a renewed
-- lease that holds none gives one row without an id. is_rescue_due: others have run out. That reads
-- the whole table, so it is asked for short leases only: of others a new leader is there in time.
WITH renewed AS (
    UPDATE windrow.lease
       SET seconds = coalesce(:seconds::bigint, lease.seconds),
           expires_at = coalesce(:now::timestamptz, statement_timestamp())
                        + coalesce(:seconds::bigint, lease.seconds) * interval '1 second'
     WHERE lease.token = ANY (:tokens::uuid[])
       AND lease.expires_at > coalesce(:now::timestamptz, statement_timestamp())
    RETURNING token, expires_at, seconds, job_ids
)
SELECT renewed.expires_at, held.id, held.stop_as,
       CASE WHEN renewed.seconds < 10
            THEN EXISTS (
                SELECT FROM windrow.lease AS lapsed
                 WHERE lapsed.expires_at <= coalesce(:now::timestamptz, statement_timestamp()))
            ELSE false END AS is_rescue_due
  FROM renewed
  LEFT JOIN LATERAL (
       SELECT job.id, job.stop_as
         FROM windrow.job_live AS job
        WHERE job.id = ANY (renewed.job_ids)
          AND job.lease = renewed.token
          AND job.state = 'active'
       OFFSET 0) AS held ON true
