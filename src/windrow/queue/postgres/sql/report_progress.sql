-- Keep how far running jobs are. :ids, :tokens, :percents, :messages, :counters (JSON texts), of
-- which percent and message may be null: left as it was; :now or null. A percentage never goes back;
-- counters are merged over the former ones. Returns the ids that were accepted.
WITH accepted AS MATERIALIZED (
    SELECT given.*
      FROM unnest(:ids::uuid[], :tokens::uuid[], :percents::integer[], :messages::text[],
                  :counters::text[])
           AS given (id, token, percent, message, counters)
     CROSS JOIN LATERAL (
           SELECT FROM windrow.job_live AS live
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
)
SELECT id FROM accepted
