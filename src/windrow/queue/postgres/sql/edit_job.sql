-- Change a job that is not running. :id; :changes, a JSON object of the fields to change; :now or
-- null. Returns before, after (states), queue, is_limited; nothing if its state does not allow it.
-- A new run_at makes a scheduled or ready job one of these again, and so do other limits, under which
-- a ready job waits from now on; new retention counts from the finish, and puts a finished job among
-- those that are removed one by one.
-- gate tenant
WITH given AS MATERIALIZED (
    SELECT fields.*,
           :changes::text::jsonb AS named,
           coalesce(:now::timestamptz, statement_timestamp()) AS now
      FROM jsonb_to_record(:changes::text::jsonb) AS fields (
           kind text, queue text, priority integer, run_at timestamptz, max_attempts integer,
           max_crashes integer, lease_seconds bigint, retention_seconds bigint, limits text[],
           max_hold_seconds bigint)
),
former AS MATERIALIZED (
    SELECT job.id, job.queue, job.state,
           CASE WHEN named ? 'limits' THEN nullif(given.limits, '{}')
                ELSE job.limit_keys END AS limit_keys,
           (given.run_at IS NOT NULL
            OR named ? 'limits'
               AND job.limit_keys IS DISTINCT FROM nullif(given.limits, '{}'))
           AND job.state IN ('scheduled', 'held', 'ready')
           AND NOT job.is_follower AS has_moved,
           coalesce(given.retention_seconds,
                    (SELECT CASE job.state WHEN 'failed' THEN queue.failed_seconds
                                           ELSE queue.cancelled_seconds END
                       FROM windrow.queue
                      WHERE queue.name = coalesce(given.queue, job.queue)),
                    CASE job.state WHEN 'failed' THEN 604800 ELSE 86400 END) AS seconds
      FROM windrow.job CROSS JOIN given
     WHERE job.id = :id::uuid
       AND job.state IN ('scheduled', 'held', 'paused', 'ready', 'failed', 'cancelled')
       FOR UPDATE OF job
),
edited AS (
    UPDATE windrow.job AS job
       SET kind = coalesce(given.kind, job.kind),
           queue = coalesce(given.queue, job.queue),
           priority = coalesce(given.priority, job.priority),
           max_attempts = coalesce(given.max_attempts, job.max_attempts),
           max_crashes = coalesce(given.max_crashes, job.max_crashes),
           lease_seconds = CASE WHEN named ? 'lease_seconds' THEN given.lease_seconds
                                ELSE job.lease_seconds END,
           retention_seconds = CASE WHEN named ? 'retention_seconds' THEN given.retention_seconds
                                    ELSE job.retention_seconds END,
           expires_at = CASE WHEN job.finished_at IS NULL OR job.group_id IS NOT NULL
                                  OR NOT named ? 'retention_seconds' THEN job.expires_at
                             WHEN former.seconds = -1 THEN 'infinity'
                             ELSE job.finished_at + former.seconds * interval '1 second' END,
           leaf = CASE WHEN job.finished_at IS NULL OR NOT named ? 'retention_seconds' THEN job.leaf
                       ELSE 0 END,
           limit_keys = former.limit_keys,
           max_hold_seconds = CASE WHEN former.limit_keys IS NULL THEN NULL
                                   WHEN named ? 'max_hold_seconds' THEN given.max_hold_seconds
                                   ELSE job.max_hold_seconds END,
           run_at = CASE WHEN former.has_moved AND job.state = 'ready'
                              AND former.limit_keys IS NOT NULL
                         THEN greatest(coalesce(given.run_at, job.run_at), given.now)
                         ELSE coalesce(given.run_at, job.run_at) END,
           state = CASE WHEN NOT former.has_moved THEN job.state
                        WHEN coalesce(given.run_at, job.run_at) > given.now THEN 'scheduled'
                        WHEN former.limit_keys IS NOT NULL THEN 'held'
                        ELSE 'ready' END
      FROM given CROSS JOIN former
     WHERE job.id = :id::uuid
    RETURNING job.id, job.queue, job.state
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT -1, queue, state FROM former
     UNION ALL
    SELECT 1, queue, state FROM edited
)
SELECT former.state AS before, edited.state AS after, edited.queue,
       former.limit_keys IS NOT NULL AS is_limited
  FROM edited JOIN former USING (id)
