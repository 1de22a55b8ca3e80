-- Apply to groups what became of their members, and end those that have none left to wait for.
-- :deltas JSON array of id, members (new ones), pending, completed, failed, cancelled (changes),
-- is_closed, cancel_reason (null: not cancelled now); :now or null.
-- Returns the groups that ended just now: id, state, root, cancel_reason, finish_job.
-- A cancelled group ends with its last member even if it is held open; one that never had a member
-- ends only when it is closed or cancelled. A group that has ended expires anew when the last member
-- that was retried has. Each change is also the progress of the root job.
-- The rows are read by a locking SELECT, which sees what the last transaction left; the snapshot
-- of this statement may be older.
-- gate tenant
WITH delta AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:deltas::text::json) AS delta (
        id uuid, members bigint, pending bigint, completed bigint, failed bigint,
        cancelled bigint, is_closed boolean, cancel_reason text)
),
former AS MATERIALIZED (
    SELECT *
      FROM windrow.job_group
     WHERE id = ANY (ARRAY(SELECT id FROM delta))
     ORDER BY id DESC
       FOR UPDATE
),
counted AS MATERIALIZED (
    SELECT former.id,
           former.state,
           former.members + delta.members AS members,
           former.pending + delta.pending AS pending,
           former.completed + delta.completed AS completed,
           former.failed + delta.failed AS failed,
           former.cancelled + delta.cancelled AS cancelled,
           former.is_open AND NOT delta.is_closed AS is_open,
           former.is_cancelled OR delta.cancel_reason IS NOT NULL AS is_cancelled,
           coalesce(former.cancel_reason, delta.cancel_reason) AS cancel_reason,
           delta.is_closed,
           delta.pending < 0 AS is_leaving,
           (delta.completed, delta.failed, delta.cancelled) <> (0, 0, 0) AS is_news,
           coalesce(:now::text::timestamptz, statement_timestamp()) AS now
      FROM former JOIN delta ON delta.id = former.id
),
verdict AS MATERIALIZED (
    SELECT *,
           state = 'active' AND pending = 0
           AND (is_cancelled OR is_closed OR (NOT is_open AND members > 0)) AS ends
      FROM counted
),
settled AS (
    UPDATE windrow.job_group AS job_group
       SET members = verdict.members,
           pending = verdict.pending,
           completed = verdict.completed,
           failed = verdict.failed,
           cancelled = verdict.cancelled,
           is_open = verdict.is_open,
           is_cancelled = verdict.is_cancelled,
           cancel_reason = verdict.cancel_reason,
           state = CASE WHEN NOT verdict.ends THEN job_group.state
                        WHEN verdict.is_cancelled THEN 'cancelled'
                        ELSE 'completed' END,
           ended_at = CASE WHEN verdict.ends THEN verdict.now ELSE job_group.ended_at END,
           expires_at = CASE WHEN verdict.pending > 0 OR job_group.retention_seconds = -1 THEN NULL
                             WHEN verdict.ends OR (verdict.state <> 'active' AND verdict.is_leaving)
                             THEN verdict.now + coalesce(job_group.retention_seconds, 86400)
                                                * interval '1 second'
                             ELSE job_group.expires_at END
      FROM verdict
     WHERE job_group.id = verdict.id
    RETURNING job_group.*, verdict.ends, verdict.is_news, verdict.now,
              job_group.completed + job_group.failed + job_group.cancelled AS ended
),
progress AS (
    INSERT INTO windrow.job_progress AS progress (id, updated_at, percent, counters)
    SELECT root, now, 100 * ended / (ended + pending),
           jsonb_build_object('total', ended + pending, 'completed', completed,
                              'failed', failed, 'cancelled', cancelled)
      FROM settled
     WHERE root IS NOT NULL AND ended + pending > 0
     ORDER BY root
        ON CONFLICT (id) DO UPDATE
       SET updated_at = excluded.updated_at,
           percent = greatest(progress.percent, excluded.percent),
           counters = progress.counters || excluded.counters
),
recorded AS (
    INSERT INTO windrow.event (at, leaf, type, state, tenant, group_id, details)
    SELECT now, windrow.event_leaf(now),
           CASE WHEN ends THEN 'group.ended' ELSE 'group.progress' END, state, tenant, id,
           json_build_object('total', ended + pending, 'completed', completed,
                             'failed', failed, 'cancelled', cancelled)
      FROM settled
     WHERE ends OR is_news
     ORDER BY id
)
SELECT id, state, root, cancel_reason, finish_job FROM settled WHERE ends
