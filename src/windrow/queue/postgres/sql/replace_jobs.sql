-- Overwrite the unclaimed holders of unique keys with new contents, in place: id, seq, created_at
-- and history stay; steps of earlier runs, made from the former contents, do not. :rows JSON array of
-- JobRow, one per key; :followers JSON array of the ids of those that replace the follower of their
-- key, which stays held; :now or null. Returns for each the new job's id (wanted_by), and id, seq,
-- queue, state, run_at, created_at of the job that was overwritten. Rows are locked in the order of
-- their ids.
-- gate enqueue
WITH given AS MATERIALIZED (
    SELECT row.*,
           row.id IN (SELECT value::uuid FROM json_array_elements_text(:followers::text::json))
               AS is_follower,
           clock.now,
           coalesce(row.run_at, clock.now + coalesce(row.delay, 0) * interval '1 second') AS due_at
      FROM (SELECT coalesce(:now::text::timestamptz, statement_timestamp()) AS now) AS clock,
           json_to_recordset(:rows::text::json) AS row (
               id uuid, queue text, kind text, payload json, headers json, tags text[],
               priority integer, run_at timestamptz, delay double precision, "unique" text,
               tenant text, "group" uuid, max_attempts integer, max_crashes integer,
               lease_seconds bigint, retention_seconds bigint, limits text[],
               max_hold_seconds bigint, is_cleaned boolean)
),
found AS MATERIALIZED (
    SELECT job.id
      FROM given
     CROSS JOIN LATERAL (
           SELECT live.id
             FROM windrow.job_live AS live
            WHERE live.unique_key = given."unique"
              AND live.tenant IS NOT DISTINCT FROM given.tenant
              AND live.is_follower = given.is_follower
           OFFSET 0) AS job
),
locked AS MATERIALIZED (
    SELECT id, queue, state, unique_key, tenant, group_id, is_follower
      FROM windrow.job_live
     WHERE id = ANY (ARRAY(SELECT id FROM found))
       AND state IN ('scheduled', 'held', 'paused', 'ready')
     ORDER BY id
       FOR UPDATE
),
holder AS MATERIALIZED (
    SELECT given.*, locked.id AS holder_id, locked.queue AS old_queue, locked.state AS old_state
      FROM given
      JOIN locked ON locked.unique_key = given."unique"
                 AND locked.tenant IS NOT DISTINCT FROM given.tenant
                 AND locked.is_follower = given.is_follower
                 AND locked.group_id IS NOT DISTINCT FROM given."group"
),
replaced AS (
    UPDATE windrow.job_live AS job
       SET queue = holder.queue,
           kind = holder.kind,
           state = CASE WHEN job.is_follower THEN 'held'
                        WHEN holder.due_at > holder.now THEN 'scheduled'
                        WHEN holder.limits <> '{}' THEN 'held'
                        ELSE 'ready' END,
           priority = holder.priority,
           run_at = holder.due_at,
           max_attempts = holder.max_attempts,
           max_crashes = holder.max_crashes,
           lease_seconds = holder.lease_seconds,
           retention_seconds = holder.retention_seconds,
           is_cleaned = holder.is_cleaned,
           limit_keys = nullif(holder.limits, '{}'),
           max_hold_seconds = holder.max_hold_seconds,
           attempts = 0,
           crashes = 0
      FROM holder
     WHERE job.id = holder.holder_id
    RETURNING holder.id AS wanted_by, job.id, job.seq, job.queue, job.state, job.run_at,
              job.created_at
),
stored AS (
    UPDATE windrow.job_payload AS stored
       SET payload = coalesce(holder.payload, 'null'),
           headers = holder.headers,
           tags = nullif(holder.tags, '{}')
      FROM holder
     WHERE stored.id = holder.holder_id
),
forgotten AS (
    DELETE FROM windrow.job_step WHERE job_id = ANY (ARRAY(SELECT holder_id FROM holder))
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), old_queue, old_state FROM holder GROUP BY old_queue, old_state
     UNION ALL
    SELECT count(*), queue, state FROM replaced GROUP BY queue, state
)
SELECT * FROM replaced
