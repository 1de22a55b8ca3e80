-- Push the expiry of live leases on. :tokens; :seconds, a new length, or null; :now or null.
-- Returns for each job that a renewed lease holds id, stop_as and the lease's expires_at; a renewed
-- lease that holds none gives one row without an id. is_rescue_due: others have run out of late; what
-- ran out before is left to whoever leads.
WITH renewed AS (
    UPDATE windrow.lease
       SET seconds = coalesce(:seconds::bigint, lease.seconds),
           expires_at = coalesce(:now::timestamptz, statement_timestamp())
                        + coalesce(:seconds::bigint, lease.seconds) * interval '1 second'
     WHERE lease.token = ANY (:tokens::uuid[])
       AND lease.expires_at > coalesce(:now::timestamptz, statement_timestamp())
    RETURNING token, expires_at, job_ids
)
SELECT renewed.expires_at, held.id, held.stop_as,
       EXISTS (
           SELECT FROM windrow.lease AS lapsed
            WHERE lapsed.expires_at <= coalesce(:now::timestamptz, statement_timestamp())
              AND lapsed.expires_at > coalesce(:now::timestamptz, statement_timestamp())
                                      - interval '10 seconds'
       ) AS is_rescue_due
  FROM renewed
  LEFT JOIN LATERAL (
       SELECT job.id, job.stop_as
         FROM windrow.job_live AS job
        WHERE job.id = ANY (renewed.job_ids)
          AND job.lease = renewed.token
          AND job.state = 'active'
       OFFSET 0) AS held ON true
