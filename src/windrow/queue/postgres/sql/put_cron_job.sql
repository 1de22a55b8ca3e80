-- Let pg_cron run :command in this database by :schedule; one of the same :name and user is changed.
-- Returns id.
SELECT cron.schedule(:name::text, :schedule::text, :command::text) AS id
