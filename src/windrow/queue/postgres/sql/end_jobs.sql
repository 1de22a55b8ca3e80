-- Move jobs to their final state.
-- :ids; :tokens (null: whatever lease); :states; :errors (null: keep a failure's text, none for
-- completed); :uses_attempts; :results or the :hashes of their blobs (null: what the row has) and
-- :are_cleaned; :from_states, in which a job must be; :now or null.
-- Members of a group do not expire: they go with it. The leaf of any other that is kept for a day at
-- the most is that of the hour in which it expires.
-- Returns id, before, after, queue, tenant, unique_key, group_id, root_of, is_follower of each that
-- moved, and its error and stop_as.
-- gate tenant
WITH gone AS (
    DELETE FROM windrow.job_live AS job
     USING unnest(:ids::uuid[], :tokens::uuid[], :states::text[], :errors::text[],
                  :uses_attempts::boolean[], :results::json[], :hashes::bytea[],
                  :are_cleaned::boolean[])
           AS given (id, token, state, error, uses_attempt, result, hash, is_cleaned)
     WHERE job.id = given.id
       AND job.state = ANY (:from_states::text[])
       AND (given.token IS NULL OR job.lease = given.token)
    RETURNING job.*, given.state AS after, given.error AS new_error, given.uses_attempt,
              given.result AS new_result, given.hash AS new_hash,
              given.is_cleaned AS new_is_cleaned
),
moved AS (
    INSERT INTO windrow.job_finished (
        id, seq, queue, kind, state, priority, run_at, created_at, started_at, finished_at,
        expires_at, attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds,
        retention_seconds, tenant, group_id, root_of, unique_key, limit_keys, max_hold_seconds,
        is_cleaned, error, result, result_hash, leaf, number)
    SELECT id, seq, queue, kind, after, priority, run_at, created_at, started_at,
           coalesce(:now::timestamptz, statement_timestamp()),
           CASE WHEN group_id IS NOT NULL THEN NULL
                WHEN seconds = -1 THEN 'infinity'
                ELSE coalesce(:now::timestamptz, statement_timestamp())
                     + seconds * interval '1 second' END,
           attempts + uses_attempt::integer, crashes, runs, max_attempts, max_crashes, lease,
           lease_seconds, retention_seconds, tenant, group_id, root_of, unique_key, limit_keys,
           max_hold_seconds, is_cleaned OR new_is_cleaned,
           CASE WHEN after <> 'completed' THEN coalesce(new_error, error) END,
           coalesce(new_result, result), coalesce(new_hash, result_hash),
           CASE WHEN group_id IS NULL AND seconds BETWEEN 0 AND 86400
                THEN 1 + (floor((date_part('epoch', coalesce(:now::timestamptz,
                                                             statement_timestamp()))
                                 + seconds) / 3600)::bigint + 1) % 28
                ELSE 0 END,
           number
      FROM (SELECT gone.*,
                   coalesce(gone.retention_seconds,
                            (SELECT CASE gone.after WHEN 'completed' THEN queue.completed_seconds
                                                    WHEN 'failed' THEN queue.failed_seconds
                                                    ELSE queue.cancelled_seconds END
                               FROM windrow.queue WHERE queue.name = gone.queue),
                            CASE WHEN gone.after = 'failed' THEN 604800 ELSE 86400 END) AS seconds
              FROM gone
            OFFSET 0) AS gone
    RETURNING id, error
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -count(*), queue, state FROM gone GROUP BY queue, state
     UNION ALL
    SELECT count(*), queue, after FROM gone GROUP BY queue, after
),
recorded AS (
    INSERT INTO windrow.event (at, leaf, type, state, queue, kind, tenant, group_id, job_ids)
    SELECT coalesce(:now::timestamptz, statement_timestamp()),
           windrow.event_leaf(coalesce(:now::timestamptz, statement_timestamp())),
           'job.finished', after, queue, kind, tenant, group_id, array_agg(id)
      FROM gone
     GROUP BY after, queue, kind, tenant, group_id
)
SELECT gone.id, gone.state AS before, gone.after, gone.queue, gone.tenant, gone.unique_key,
       gone.group_id, gone.root_of, gone.is_follower, gone.stop_as, moved.error
  FROM gone JOIN moved USING (id)
