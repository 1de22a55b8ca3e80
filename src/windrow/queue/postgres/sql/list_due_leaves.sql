-- The leaves of the hours that have passed since everything due was removed, and of the two before
-- for whatever was written late. :now or null.
-- Returns leaf, pages; those with nothing in them have 0 pages. Leaves of
-- the ring only: after 28 hours without a prune all of them, whatever else they hold by now.
WITH clock AS MATERIALIZED (
    SELECT floor(date_part('epoch', coalesce(:now::timestamptz, statement_timestamp())) / 3600)::bigint
           AS hour
),
passed AS (
    SELECT generate_series(
               greatest(clock.hour - 27,
                        (SELECT max(least(floor(date_part('epoch', done_at) / 3600)::bigint,
                                          clock.hour)) - 1
                           FROM windrow.pruning)),
               clock.hour) AS hour
      FROM clock
)
SELECT 'job_finished_' || to_char(1 + hour % 28, 'FM00') AS leaf,
       pg_relation_size(to_regclass('windrow.job_finished_' || to_char(1 + hour % 28, 'FM00')))
       / current_setting('block_size')::bigint AS pages
  FROM passed
 ORDER BY hour
