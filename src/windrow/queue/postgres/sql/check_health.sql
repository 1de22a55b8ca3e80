-- How the database is. :now or null.
-- Returns now; connections and max_connections, of the server or, if that is nearer to its limit, of
-- this database; live_rows and dead_rows of job_live; and of the transaction that keeps most from being
-- cleaned up here, if there is one: name, is_prepared, user_name, application, session_state, seconds,
-- statement. What other users' sessions do, and that they are no servants of the server, is seen only
-- with the right to; that they are there is seen by all.
WITH session AS (
    SELECT *
      FROM pg_stat_activity
     WHERE datname IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'
),
used AS (
    SELECT count(*) AS n,
           current_setting('max_connections')::integer
               - current_setting('superuser_reserved_connections')::integer AS most
      FROM session
     UNION ALL
    SELECT (SELECT count(*) FROM session WHERE datname = current_database()), datconnlimit
      FROM pg_database
     WHERE datname = current_database() AND datconnlimit > 0
),
tightest AS (
    SELECT n, most FROM used ORDER BY n::double precision / greatest(most, 1) DESC LIMIT 1
),
holder AS (
    SELECT pid::text AS name, false AS is_prepared, usename::text AS user_name,
           application_name AS application, state AS session_state,
           extract(epoch FROM clock_timestamp() - xact_start)::double precision AS seconds,
           left(query, 200) AS statement,
           greatest(age(backend_xmin), age(backend_xid)) AS age
      FROM session
     WHERE datname = current_database()
       AND pid <> pg_backend_pid()
       AND xact_start IS NOT NULL
       AND num_nonnulls(backend_xmin, backend_xid) > 0
     UNION ALL
    SELECT gid, true, owner::text, '', 'prepared',
           extract(epoch FROM clock_timestamp() - prepared)::double precision, '', age(transaction)
      FROM pg_prepared_xacts
     WHERE database = current_database()
),
oldest AS (
    SELECT * FROM holder ORDER BY age DESC, seconds DESC LIMIT 1
)
SELECT coalesce(:now::timestamptz, clock_timestamp()) AS now, tightest.n AS connections,
       tightest.most AS max_connections,
       pg_stat_get_live_tuples('windrow.job_live'::regclass) AS live_rows,
       pg_stat_get_dead_tuples('windrow.job_live'::regclass) AS dead_rows,
       oldest.*
  FROM tightest
  LEFT JOIN oldest ON true
