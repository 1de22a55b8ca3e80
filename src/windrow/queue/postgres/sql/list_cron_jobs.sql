-- The jobs of pg_cron whose names begin with :prefix, with the last run of each. Run in the database
-- that has pg_cron. Returns id, name, schedule, command, database, is_active, ran_at, status, message.
SELECT job.jobid AS id, job.jobname AS name, job.schedule, job.command, job.database,
       job.active AS is_active, run.start_time AS ran_at, run.status, run.return_message AS message
  FROM cron.job
  LEFT JOIN LATERAL (
       SELECT start_time, status, return_message
         FROM cron.job_run_details AS detail
        WHERE detail.jobid = job.jobid
        ORDER BY runid DESC
        LIMIT 1) AS run ON true
 WHERE starts_with(job.jobname, :prefix::text)
 ORDER BY job.jobname
