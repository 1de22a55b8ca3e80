-- End runs as completed that belong to no group: part of complete_jobs, which says what its parameters
-- are. Gives gone, each job; finished, their numbers and ids by queue, kind and tenant; promoted, their
-- followers.
-- A follower is promoted after its holder's row is deleted, because its id is read from that deletion;
-- the unique index then has room. The leaf is the hour of expiry round a ring.
gone AS (
    DELETE FROM windrow.job_live AS job
     USING unnest(:ids::text::uuid[], :holders::integer[], :results::json[],
                  :are_cleaned::boolean[])
           AS given (id, holder, result, is_cleaned)
     WHERE job.id = given.id
       AND job.lease = (SELECT :tokens::text::uuid[])[coalesce(given.holder, 1)]
       AND job.state = 'active'
       AND job.group_id IS NULL
       AND job.root_of IS NULL
    RETURNING job.*, given.result AS new_result, coalesce(given.is_cleaned, false) AS new_is_cleaned
),
finished AS MATERIALIZED (
    SELECT queue, kind, tenant, count(*) AS n, array_agg(id) AS job_ids
      FROM gone
     GROUP BY queue, kind, tenant
),
moved AS (
    INSERT INTO windrow.job_finished (
        id, seq, queue, kind, state, priority, run_at, created_at, started_at, finished_at,
        expires_at, attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds,
        retention_seconds, tenant, unique_key, limit_keys, max_hold_seconds, is_cleaned, result,
        leaf, number)
    SELECT id, seq, queue, kind, 'completed', priority, run_at, created_at, started_at,
           coalesce(:now::timestamptz, statement_timestamp()),
           CASE WHEN seconds = -1 THEN 'infinity'
                ELSE coalesce(:now::timestamptz, statement_timestamp())
                     + seconds * interval '1 second' END,
           attempts, crashes, runs, max_attempts, max_crashes, lease, lease_seconds,
           retention_seconds, tenant, unique_key, limit_keys, max_hold_seconds,
           is_cleaned OR new_is_cleaned, new_result,
           CASE WHEN seconds BETWEEN 0 AND 86400
                THEN 1 + (floor((date_part('epoch', coalesce(:now::timestamptz,
                                                             statement_timestamp()))
                                 + seconds) / 3600)::bigint + 1) % 28
                ELSE 0 END,
           number
      FROM (SELECT gone.*,
                   coalesce(gone.retention_seconds,
                            -- Mostly all are of one queue: one look instead of one for each.
                            CASE WHEN (SELECT min(queue) = max(queue) FROM finished)
                                 THEN (SELECT queue.completed_seconds
                                         FROM windrow.queue
                                        WHERE queue.name = (SELECT min(queue) FROM finished))
                                 ELSE (SELECT queue.completed_seconds
                                         FROM windrow.queue WHERE queue.name = gone.queue) END,
                            86400) AS seconds
              FROM gone
            OFFSET 0) AS gone
),
promoted AS (
    UPDATE windrow.job_live AS job
       SET is_follower = false,
           state = CASE WHEN job.state <> 'held' THEN job.state
                        WHEN job.run_at > coalesce(:now::timestamptz, statement_timestamp())
                        THEN 'scheduled'
                        WHEN job.limit_keys IS NOT NULL THEN 'held'
                        ELSE 'ready' END,
           run_at = CASE WHEN job.limit_keys IS NULL THEN job.run_at
                         ELSE greatest(job.run_at,
                                       coalesce(:now::timestamptz, statement_timestamp())) END
     WHERE job.id = ANY (ARRAY(
               SELECT follower.id
                 FROM gone
                CROSS JOIN LATERAL (
                      SELECT live.id
                        FROM windrow.job_live AS live
                       WHERE live.is_follower
                         AND live.unique_key = gone.unique_key
                         AND live.tenant IS NOT DISTINCT FROM gone.tenant
                      OFFSET 0) AS follower
                WHERE gone.unique_key IS NOT NULL))
    RETURNING job.queue, job.state
),
ended AS (
    DELETE FROM windrow.lease
     USING (SELECT lease AS token, count(*) AS n FROM gone GROUP BY lease ORDER BY lease) AS done
     WHERE lease.token = done.token
       AND (CASE WHEN done.n = cardinality(lease.job_ids) THEN true
                 -- Mostly the last of them ends last: one look instead of one for each.
                 WHEN EXISTS (
                      SELECT FROM windrow.job_live AS job
                       WHERE job.id = lease.job_ids[cardinality(lease.job_ids)]
                         AND job.lease = lease.token
                         AND job.state = 'active'
                         AND job.id <> ALL (ARRAY(SELECT id FROM gone))) THEN false
                 -- As they were before: if none but those that end now were left, it is over.
                 ELSE done.n = (
                      SELECT count(*) FROM windrow.job_live AS job
                       WHERE job.id = ANY (lease.job_ids)
                         AND job.lease = lease.token
                         AND job.state = 'active')
            END)
)
