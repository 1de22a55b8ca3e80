-- What keys have in use. :keys, locked; :times, when the bucket of each was last filled, null if it
-- has none; :now or null. Returns for keys that have slots how many jobs are ready, how many ready
-- or active (in_use), how many started since the bucket was filled and when the last did
-- (last_started_at); and last a row without a key; now in each.
-- Slots say where to look, the jobs' own rows what is: slots of jobs that are in use no more are
-- removed on the way. Finished jobs are looked at for keys with a bucket only.
WITH slot AS MATERIALIZED (
    SELECT slot.key, slot.job_id,
           CASE WHEN job.state IN ('ready', 'active') THEN job.state END AS state,
           coalesce(job.started_at, done.started_at) > given.refilled_at AS is_started,
           coalesce(job.started_at, done.started_at) AS started_at
      FROM unnest(:keys::text[], :times::timestamptz[]) AS given (key, refilled_at)
     CROSS JOIN LATERAL (
           SELECT found.key, found.job_id
             FROM windrow.job_slot AS found
            WHERE found.key = given.key
           OFFSET 0) AS slot
      LEFT JOIN LATERAL (
           SELECT live.id, live.state, live.started_at
             FROM windrow.job_live AS live
            WHERE live.id = slot.job_id AND slot.key = ANY (live.limit_keys)
           OFFSET 0) AS job ON true
      LEFT JOIN LATERAL (
           SELECT finished.started_at
             FROM windrow.job_finished AS finished
            WHERE given.refilled_at IS NOT NULL
              AND job.id IS NULL
              AND finished.id = slot.job_id
           OFFSET 0) AS done ON true
),
freed AS (
    DELETE FROM windrow.job_slot AS slot
     USING (SELECT key, job_id FROM slot WHERE state IS NULL) AS stale
     WHERE slot.key = stale.key AND slot.job_id = stale.job_id
)
SELECT key, count(*) FILTER (WHERE state = 'ready') AS ready, count(state) AS in_use,
       count(*) FILTER (WHERE is_started) AS started,
       max(started_at) FILTER (WHERE is_started) AS last_started_at,
       coalesce(:now::timestamptz, statement_timestamp()) AS now
  FROM slot
 GROUP BY key
 UNION ALL
SELECT NULL, 0, 0, 0, NULL, coalesce(:now::timestamptz, statement_timestamp())
