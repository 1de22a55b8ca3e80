-- Like put_cron_job, in another :database, which needs a right of its own. Returns id.
SELECT cron.schedule_in_database(:name::text, :schedule::text, :command::text, :database::text) AS id
