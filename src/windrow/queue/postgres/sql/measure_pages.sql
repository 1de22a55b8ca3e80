-- What kept pages take. Returns bytes.
SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM windrow.page
