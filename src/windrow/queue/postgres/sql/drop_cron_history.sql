-- Forget runs of pg_cron older than a day, of the jobs of these :names: it keeps them for ever. Run in
-- the database that has pg_cron.
DELETE FROM cron.job_run_details
 WHERE jobid IN (SELECT jobid FROM cron.job WHERE jobname = ANY (:names::text[]))
   AND start_time < now() - interval '1 day'
