-- Keep how far running jobs are. :ids, :tokens, :percents, :messages, :counters (JSON texts), of
-- which percent and message may be null: left as it was; :now or null. A percentage never goes back;
-- counters are merged over the former ones. Returns the ids that were accepted.
WITH accepted AS MATERIALIZED (
    SELECT given.*, job.queue, job.kind, job.tenant, job.group_id
      FROM unnest(:ids::uuid[], :tokens::uuid[], :percents::integer[], :messages::text[],
                  :counters::text[])
           AS given (id, token, percent, message, counters)
     CROSS JOIN LATERAL (
           SELECT live.queue, live.kind, live.tenant, live.group_id
             FROM windrow.job_live AS live
            WHERE live.id = given.id AND live.lease = given.token AND live.state = 'active'
           OFFSET 0) AS job
),
written AS (
    INSERT INTO windrow.job_progress AS progress (id, updated_at, percent, message, counters)
    SELECT id, coalesce(:now::timestamptz, statement_timestamp()), coalesce(percent, 0), message,
           counters::jsonb
      FROM accepted
     ORDER BY id
        ON CONFLICT (id) DO UPDATE
       SET updated_at = excluded.updated_at,
           percent = greatest(progress.percent, excluded.percent),
           message = coalesce(excluded.message, progress.message),
           counters = progress.counters || excluded.counters
    RETURNING id, percent, message, counters
),
recorded AS (
    INSERT INTO windrow.event (at, leaf, type, state, queue, kind, tenant, group_id, job_ids, details)
    SELECT coalesce(:now::timestamptz, statement_timestamp()),
           windrow.event_leaf(coalesce(:now::timestamptz, statement_timestamp())),
           'job.progress', 'active', queue, kind, tenant, group_id, ARRAY[id],
           json_build_object('percent', written.percent, 'message', written.message,
                             'counters', written.counters)
      FROM accepted JOIN written USING (id)
)
SELECT id FROM accepted
