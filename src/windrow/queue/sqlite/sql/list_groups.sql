-- A page of groups, newest first, as their rows have them: live members are not counted.
-- {conditions} those of `grouping.py`, with their parameters; :limit
-- Returns the fields of `rows.GroupRecord`.
SELECT
  id, state, is_paused, is_open, is_cancelled, reason, added, pending, completed, failed, cancelled,
  root, tenant, finish_job, created_at, ended_at, max_jobs
FROM windrow_job_group
WHERE {conditions}
ORDER BY id DESC
LIMIT :limit
