-- Failed and cancelled jobs are ready again (held with limits), as if they had not run; the history stays.
-- :ids, locked before; :now or null. Returns id, queue, before, after, group_id of those that are.
-- A job whose unique key has a live holder is left where it is.
-- gate tenant
WITH former AS MATERIALIZED (
    SELECT * FROM windrow.job_finished
     WHERE id = ANY (:ids::uuid[]) AND state IN ('failed', 'cancelled')
),
inserted AS (
    INSERT INTO windrow.job_live (
        id, seq, queue, kind, state, priority, run_at, created_at, started_at, runs, max_attempts,
        max_crashes, lease_seconds, retention_seconds, tenant, group_id, root_of, unique_key,
        limit_keys, max_hold_seconds, is_cleaned, number)
    SELECT id, seq, queue, kind, CASE WHEN limit_keys IS NULL THEN 'ready' ELSE 'held' END, priority,
           coalesce(:now::timestamptz, statement_timestamp()), created_at, started_at, runs,
           max_attempts, max_crashes, lease_seconds, retention_seconds, tenant, group_id, root_of,
           unique_key, limit_keys, max_hold_seconds, is_cleaned, number
      FROM former
     ORDER BY unique_key, tenant, seq
        ON CONFLICT DO NOTHING
    RETURNING id
),
gone AS (
    DELETE FROM windrow.job_finished AS job
     WHERE job.id = ANY (ARRAY(SELECT id FROM inserted))
    RETURNING job.id, job.queue, job.state, job.group_id,
              CASE WHEN job.limit_keys IS NULL THEN 'ready' ELSE 'held' END AS after
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, state FROM gone GROUP BY queue, state
     UNION ALL
    SELECT count(*), queue, after FROM gone GROUP BY queue, after
)
SELECT id, queue, state AS before, after, group_id FROM gone
