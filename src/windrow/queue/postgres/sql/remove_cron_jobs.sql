-- Let pg_cron run these no longer. :ids. Returns is_removed of each.
SELECT cron.unschedule(id) AS is_removed FROM unnest(:ids::bigint[]) AS given (id)
