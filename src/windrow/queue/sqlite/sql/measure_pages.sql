-- What kept pages take. Returns bytes.
SELECT coalesce(sum(bytes), 0) AS bytes FROM windrow_page
