-- Jobs as they were elsewhere, with payload and progress. :rows, a JSON array of CopiedJob; :hashes of
-- the blobs of their results (null: the result itself), by :ids.
-- They keep their places in the line and forget the lease of their last run. Finished ones go to the
-- leaf of those that are kept: the others are emptied by the hour, and the time of a job that comes
-- from elsewhere may be over already, or far off.
WITH given AS MATERIALIZED (
    SELECT given.*, hashed.hash
      FROM json_to_recordset(:rows::text::json) AS given (
           id uuid, queue text, kind text, state text, priority integer, attempts integer,
           crashes integer, runs integer, max_attempts integer, max_crashes integer,
           created_at timestamptz, run_at timestamptz, started_at timestamptz,
           finished_at timestamptz, expires_at timestamptz, tenant text, "group" uuid, root_of uuid,
           "unique" text, error text, lease_seconds bigint, retention_seconds bigint,
           is_cleaned boolean, tags text[], progress json, limits text[], max_hold_seconds bigint,
           place bigint, payload text, headers text, result text, is_follower boolean)
      JOIN unnest(:ids::uuid[], :hashes::bytea[]) AS hashed (id, hash) ON hashed.id = given.id
),
written AS (
    INSERT INTO windrow.job (
        id, seq, queue, kind, state, priority, run_at, created_at, started_at, finished_at,
        expires_at, attempts, crashes, runs, max_attempts, max_crashes, lease_seconds,
        retention_seconds, tenant, group_id, root_of, unique_key, is_follower, is_cleaned, error,
        limit_keys, max_hold_seconds, result, result_hash, leaf)
    SELECT id, place, queue, kind, state, priority, run_at, created_at, started_at, finished_at,
           CASE WHEN finished_at IS NULL OR "group" IS NOT NULL THEN NULL
                ELSE coalesce(expires_at, 'infinity') END,
           attempts, crashes, runs, max_attempts, max_crashes, lease_seconds, retention_seconds,
           tenant, "group", root_of, "unique", coalesce(is_follower, false), is_cleaned, error,
           nullif(limits, '{}'), max_hold_seconds,
           CASE WHEN hash IS NULL THEN result::json END, hash,
           CASE WHEN state IN ('completed', 'failed', 'cancelled') THEN 0 END
      FROM given
     ORDER BY "unique", tenant, id
),
stored AS (
    INSERT INTO windrow.job_payload (id, payload, headers, tags)
    SELECT id, payload::json, headers::json, nullif(tags, '{}') FROM given
),
progressed AS (
    INSERT INTO windrow.job_progress (id, updated_at, percent, message, counters)
    SELECT id, (progress ->> 'updated_at')::timestamptz, (progress ->> 'percent')::integer,
           progress ->> 'message', (progress -> 'counters')::jsonb
      FROM given
     WHERE progress ->> 'percent' IS NOT NULL
),
tallied AS (
    INSERT INTO windrow.tally (n, queue, state)
    SELECT count(*), queue, state FROM given GROUP BY queue, state
)
SELECT id FROM given
