-- Jobs of one of the two tables, newest first, without results and errors. `get_jobs` reads with it too.
-- {table} windrow_job_live or windrow_job_finished; {conditions} those of `looking.py`, with their parameters; :limit
-- Returns the columns `rows.read_job` takes.
SELECT
  j.*, p.payload, p.headers, p.tags, p.is_cleaned,
  g.percent, g.message AS progress_message, g.counters, g.updated_at AS progress_at,
  l.worker, l.expires_at AS lease_expires_at, m.expires_at AS group_expires_at
FROM {table} AS j
CROSS JOIN windrow_job_payload AS p ON p.seq = j.seq
LEFT JOIN windrow_job_progress AS g ON g.seq = j.seq
LEFT JOIN windrow_lease AS l ON l.token = j.lease AND j.state = 'active'
LEFT JOIN windrow_job_group AS m ON m.id = j.group_id AND j.finished_at IS NOT NULL
WHERE {conditions}
ORDER BY j.id DESC
LIMIT :limit
