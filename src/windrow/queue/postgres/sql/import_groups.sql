-- Groups as they were elsewhere. :rows, a JSON array of their columns.
INSERT INTO windrow.job_group (
    id, state, is_paused, is_open, is_cancelled, cancel_reason, members, pending, completed, failed,
    cancelled, root, tenant, finish_job, retention_seconds, created_at, ended_at, expires_at,
    max_jobs)
SELECT id, state, is_paused, is_open, is_cancelled, reason, members, pending, completed, failed,
       cancelled, root, tenant, finish_job::json, retention_seconds, created_at, ended_at, expires_at,
       max_jobs
  FROM json_to_recordset(:rows::text::json) AS given (
       id uuid, state text, is_paused boolean, is_open boolean, is_cancelled boolean, reason text,
       members bigint, pending bigint, completed bigint, failed bigint, cancelled bigint, root uuid,
       tenant text, finish_job text, retention_seconds bigint, created_at timestamptz,
       ended_at timestamptz, expires_at timestamptz, max_jobs bigint)
 ORDER BY id
