-- What keys have in use. :keys, locked; :times, when the bucket of each was last filled, null if it
-- has none; :patience in seconds; :now or null. Returns for keys that have slots how many jobs are ready,
-- how many ready or active (in_use), how many started since the bucket was filled and when the last did
-- (last_started_at), and the ready jobs that could give their places to others (idle, a JSON array or
-- null: id, keys, queue, kind, tenant, is_overdue). Last comes a row without a key: now, and whether some
-- queue or group is paused or some lane unserved (is_lane_closed).
-- A ready job is idle when no claim would take it, when its lane is unserved, or when nobody has
-- claimed it for longer than :patience (is_overdue).
-- Slots say where to look, the jobs' own rows what is: slots of jobs that are in use no more are
-- removed on the way. Finished jobs are looked at for keys with a bucket only.
WITH moment AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
),
slot AS MATERIALIZED (
    SELECT slot.key, slot.job_id, slot.taken_at, job.limit_keys, job.queue, job.kind, job.tenant,
           job.group_id,
           CASE WHEN job.state IN ('ready', 'active') THEN job.state END AS state,
           coalesce(job.started_at, done.started_at) > given.refilled_at AS is_started,
           coalesce(job.started_at, done.started_at) AS started_at
      FROM unnest(:keys::text[], :times::timestamptz[]) AS given (key, refilled_at)
     CROSS JOIN LATERAL (
           SELECT found.key, found.job_id, found.taken_at
             FROM windrow.job_slot AS found
            WHERE found.key = given.key
           OFFSET 0) AS slot
      LEFT JOIN LATERAL (
           SELECT live.id, live.state, live.started_at, live.limit_keys, live.queue, live.kind,
                  live.tenant, live.group_id
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
),
ready AS MATERIALIZED (
    SELECT slot.*,
           slot.queue = ANY (ARRAY(SELECT name FROM windrow.queue WHERE is_paused))
           OR slot.group_id = ANY (ARRAY(SELECT id FROM windrow.job_group WHERE is_paused))
           OR slot.limit_keys && ARRAY(SELECT key FROM windrow.job_limit
                                        WHERE parked_until > (SELECT now FROM moment))
               AS is_blocked,
           (slot.queue, slot.kind, coalesce(slot.tenant, '')) IN (
               SELECT queue, kind, tenant FROM windrow.unserved
                WHERE until > (SELECT now FROM moment)) AS is_unserved,
           slot.taken_at + :patience::double precision * interval '1 second'
               < (SELECT now FROM moment) AS is_overdue
      FROM slot
     WHERE state = 'ready'
),
idle AS (
    SELECT key, json_agg(json_build_object(
               'id', job_id, 'keys', limit_keys, 'queue', queue, 'kind', kind, 'tenant', tenant,
               'is_overdue', is_overdue AND is_blocked IS NOT TRUE AND NOT is_unserved
           )) AS jobs
      FROM ready
     WHERE is_blocked OR is_unserved OR is_overdue
     GROUP BY key
),
counted AS (
    SELECT key, count(*) FILTER (WHERE state = 'ready') AS ready, count(state) AS in_use,
           count(*) FILTER (WHERE is_started) AS started,
           max(started_at) FILTER (WHERE is_started) AS last_started_at
      FROM slot
     GROUP BY key
)
SELECT key, ready, in_use, started, last_started_at, idle.jobs::text AS idle, moment.now,
       NULL::boolean AS is_lane_closed
  FROM counted
  LEFT JOIN idle USING (key)
 CROSS JOIN moment
 UNION ALL
SELECT NULL, 0, 0, 0, NULL, NULL, now,
       EXISTS (SELECT FROM windrow.queue WHERE is_paused)
       OR EXISTS (SELECT FROM windrow.job_group WHERE is_paused)
       OR EXISTS (SELECT FROM windrow.unserved WHERE until > moment.now)
  FROM moment
