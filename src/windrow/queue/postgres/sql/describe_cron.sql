-- Where pg_cron has its tables, as far as it can be seen from here. Returns database (this one), name
-- (of the user) and home: this database if the extension is in it, else the one that the server's
-- settings name; null if pg_cron is not loaded or this user may not see its settings.
SELECT current_database() AS database,
       current_user AS name,
       CASE WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_cron')
            THEN current_database()
            ELSE (SELECT setting FROM pg_settings WHERE name = 'cron.database_name') END AS home
