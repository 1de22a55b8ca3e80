-- How many jobs carry keys and are ready, or ready or active (in_use). :keys, locked; :now or null.
-- Returns key, ready, in_use of those that have some, and last a row without a key; now in each.
-- Slots say where to look, the jobs' own rows what is: slots of jobs that are in use no more are
-- removed on the way.
WITH slot AS MATERIALIZED (
    SELECT slot.key, slot.job_id, job.state
      FROM unnest(:keys::text[]) AS given (key)
     CROSS JOIN LATERAL (
           SELECT found.key, found.job_id
             FROM windrow.job_slot AS found
            WHERE found.key = given.key
           OFFSET 0) AS slot
      LEFT JOIN LATERAL (
           SELECT live.state
             FROM windrow.job_live AS live
            WHERE live.id = slot.job_id
              AND live.state IN ('ready', 'active')
              AND slot.key = ANY (live.limit_keys)
           OFFSET 0) AS job ON true
),
freed AS (
    DELETE FROM windrow.job_slot AS slot
     USING (SELECT key, job_id FROM slot WHERE state IS NULL) AS stale
     WHERE slot.key = stale.key AND slot.job_id = stale.job_id
)
SELECT key, count(*) FILTER (WHERE state = 'ready') AS ready, count(*) AS in_use,
       coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM slot
 WHERE state IS NOT NULL
 GROUP BY key
 UNION ALL
SELECT NULL, 0, 0, coalesce(:now::timestamptz, statement_timestamp())
